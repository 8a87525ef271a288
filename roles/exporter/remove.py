"""Steps that remove the exporter from one host, before its packages."""

from __future__ import annotations

from gpufleet.exporter import operations as exporter
from gpufleet.exporter.role import ROLE as EXPORTER
from gpufleet.node.operations.removal import RemovalNode


def before(node: RemovalNode) -> None:
    """Stop the exporter's services, in either mode."""
    plan = node.plan.of(EXPORTER)
    exporter.stop_exporter("Stop the exporter", plan.units, plan.images)
