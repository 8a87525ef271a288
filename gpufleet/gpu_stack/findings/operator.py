"""Findings about NVIDIA's GPU Operator."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

OPERATOR_COLLIDES = blocker(
    "GF884",
    "GPU Operator conflicts with an existing component",
    "{found} already runs {chart}, and the GPU Operator installs its own: {why}.",
    'Remove it first ({remove}), or use cluster_stack = "device-plugin".',
)
POLICY_THERE = blocker(
    "GF885",
    "Another ClusterPolicy exists",
    "ClusterPolicy {policy} belongs to {owner}, not to release {release}. The operator reconciles "
    "only the oldest one.",
    "Remove that one with its operator first. That unloads the drivers it loaded: drain the nodes "
    "before. If only the namespace differs, set gpu_operator_namespace.",
)
DRIVERS_NOT_EVERYWHERE = warning(
    "GF886",
    "GPU nodes without a driver",
    "The GPU Operator is configured to install no drivers, because {have} have one; {lack} have "
    "none.",
    "Run `gpufleet apply` on those, or set gpu_operator_driver = True: nodes with a driver of "
    "the host are not changed.",
)
NOT_FOR_OPERATOR = warning(
    "GF887",
    "Settings have no effect with the GPU Operator",
    "{keys} apply to the device plugin and exporter releases; gpu-operator {version} does not use "
    "them.",
    "Set the operator's own values in gpu_operator_values.",
)
