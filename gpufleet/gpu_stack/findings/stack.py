"""Findings about what a cluster already has, and what the GPU stack would add."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

OPERATOR_THERE = Kind(
    "GF870",
    Severity.BLOCKER,
    "The GPU Operator manages this cluster",
    "The cluster has a GPU Operator ({found}), and cluster_stack asks for the device plugin beside "
    "it: both would offer the same GPUs.",
    'Set cluster_stack = "gpu-operator", or remove the operator first.',
)
PLUGIN_THERE = Kind(
    "GF871",
    Severity.BLOCKER,
    "Something else offers the GPUs",
    "{found} runs the device plugin already, and it is no release of gpufleet.",
    "Remove it first, or leave it and set the component off.",
)
EXPORTER_THERE = Kind(
    "GF872",
    Severity.WARNING,
    "An exporter collects already",
    "{found} collects metrics of the GPUs already; a second one would count everything twice and "
    "take the profiling counters away. dcgm-exporter is left out.",
    "Remove that one and run again, or set monitoring_exporter = False and scrape it.",
)
NO_GPU_NODES = Kind(
    "GF873",
    Severity.WARNING,
    "No node is known to have a GPU",
    "No node has one of the labels {labels}, and none offers nvidia.com/gpu.",
    "{advice}",
)
COUNTERS_NOT_PASSED = Kind(
    "GF877",
    Severity.WARNING,
    "The chart takes no list of counters",
    "dcgm-exporter {version} cannot be given monitoring_counters: the value customMetrics came "
    "with {since}.",
    "Leave monitoring_counters out, or use a newer chart where Kubernetes allows it.",
)
NFD_THERE = Kind(
    "GF878",
    Severity.INFO,
    "NFD is there already",
    "{found} labels the nodes already; a second NFD would fight with it.",
    "See that it labels by vendor (feature.node.kubernetes.io/pci-10de.present).",
)
OPERATOR_INSTALLS_DRIVERS = Kind(
    "GF879",
    Severity.WARNING,
    "The operator would install drivers",
    "No node shows a driver yet, so the GPU Operator is left to install drivers in containers.",
    "Run deploys/gpu_node.py on the nodes first, or set gpu_operator_driver.",
)
