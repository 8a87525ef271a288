"""NVIDIA's GPU Operator: plugin, exporter and validation in one release."""

from __future__ import annotations

from gpufleet.gpu_stack.operations.stack import Stack
from gpufleet.helm.builder import OPERATOR
from gpufleet.host.operation import host_role


@host_role("GPU Operator")
def install(stack: Stack) -> None:
    """Apply the plan of the operator's release. Then share the GPUs of nodes."""
    stack.retire_configs()
    stack.apply(OPERATOR)
    stack.share_gpus()
