"""Steps that remove Kubernetes from one host, before its packages."""

from __future__ import annotations

from gpufleet.kubernetes.operations import joining
from gpufleet.kubernetes.role import ROLE as KUBERNETES
from gpufleet.node.operations.removal import RemovalNode
from gpufleet.toolkit import operations as runtimes


def first(node: RemovalNode) -> None:
    """Take the host out of its cluster."""
    plan = node.plan.of(KUBERNETES)
    joining.reset("Take the host out of its cluster", plan is not None and plan.reset)


def before(node: RemovalNode) -> None:
    """Take the kubelet's settings out of containerd's configuration."""
    plan = node.plan.of(KUBERNETES)
    runtimes.configure(
        "Restore containerd's configuration", node.facts, plan.containerd if plan else None
    )
