"""The exporter leaves one host: what is carried out before packages go."""

from __future__ import annotations

from gpufleet.exporter import operations as exporter
from gpufleet.exporter.role import ROLE as EXPORTER
from gpufleet.node.operations.removal import LeavingNode


def before(node: LeavingNode) -> None:
    """Its services, of either mode."""
    plan = node.plan.of(EXPORTER)
    exporter.stop("Stop the exporter", plan.units, plan.images)
