"""Findings about NVIDIA's GPU Operator."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

OPERATOR_NOT_READY = Kind(
    "GF882",
    Severity.BLOCKER,
    "The GPU Operator has not brought everything up",
    "Release {release} is installed, but not all that its operator brings was ready after "
    "{seconds} s: {reasons}",
    "The operator goes on by itself and nothing is taken back: run again to wait on, with a larger "
    "cluster_timeout where drivers are compiled. If it stays: kubectl -n {namespace} logs "
    "deployment/gpu-operator",
)
OPERATOR_FOUND_NO_GPU = Kind(
    "GF883",
    Severity.WARNING,
    "The GPU Operator found no node with a GPU",
    "ClusterPolicy {policy} is ready because there is nothing to do: {message}",
    "Nodes with a GPU have the label feature.node.kubernetes.io/pci-10de.present=true: see that "
    "node-feature-discovery runs on them. Where they are still to join, there is nothing to do.",
)
OPERATOR_COLLIDES = Kind(
    "GF884",
    Severity.BLOCKER,
    "The GPU Operator would collide with what is there",
    "{found} runs {chart} already, and the GPU Operator brings its own: {why}.",
    'Remove it first ({remove}), or stay with cluster_stack = "device-plugin".',
)
POLICY_THERE = Kind(
    "GF885",
    Severity.BLOCKER,
    "The cluster has another ClusterPolicy",
    "ClusterPolicy {policy} is of {owner}, not of release {release}. The operator heeds the oldest "
    "one alone and ignores the rest.",
    "Remove that one with its operator first. Drivers that it loaded go with it: drain the nodes "
    "before. Or set gpu_operator_namespace where only the namespace differs.",
)
DRIVERS_NOT_EVERYWHERE = Kind(
    "GF886",
    Severity.WARNING,
    "Some GPU nodes show no driver",
    "The GPU Operator is told to install no drivers, because {have} have one; {lack} show none.",
    "Run deploys/gpu_node.py on those, or set gpu_operator_driver = True: nodes with a driver of "
    "their own keep it.",
)
NOT_FOR_OPERATOR = Kind(
    "GF887",
    Severity.WARNING,
    "Settings do not reach the GPU Operator",
    "{keys} are for releases of device plugin and exporter; gpu-operator {version} is not given "
    "them.",
    "Write the operator's own values for it into gpu_operator_values.",
)
