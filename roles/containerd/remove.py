"""Steps that precede the removal of a containerd that gpufleet installed."""

from __future__ import annotations

from gpufleet.containerd import operations as containerd
from gpufleet.containerd.role import ROLE as CONTAINERD
from gpufleet.node.operations.removal import RemovalNode


def first(node: RemovalNode) -> None:
    """Stop the removal if containers other than those of Kubernetes run."""
    plan = node.plan.of(CONTAINERD)
    containerd.require_idle("Check that containerd runs no containers", plan.goes)


def before(node: RemovalNode) -> None:
    """After Kubernetes' and the toolkit's settings are removed."""
    plan = node.plan.of(CONTAINERD)
    containerd.restore_containerd_config(
        "Restore containerd's packaged configuration", plan.config, plan.restores
    )
