"""Steps that return the GPUs of one host to whole GPUs."""

from __future__ import annotations

from gpufleet.gpu import operations as gpus
from gpufleet.gpu.role import ROLE as GPU
from gpufleet.node.operations.removal import RemovalNode


def first(node: RemovalNode) -> None:
    """Before the driver's modules are unloaded."""
    plan = node.plan.of(GPU)
    gpus.drop_layout("Return the GPUs to whole GPUs with default limits", plan.managed)
