"""NVIDIA's GPU Operator: plugin, exporter and validation in one release."""

from __future__ import annotations

from gpufleet.operations.operation import role
from gpufleet.operations.stack import Stack
from gpufleet.plan.stack_builder import OPERATOR


@role("GPU Operator")
def install(stack: Stack) -> None:
    """Bring the operator's release to its plan."""
    stack.bring("Let NVIDIA's operator manage the GPUs", OPERATOR)
