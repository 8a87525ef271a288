"""Steps that remove Kubernetes from one host, before its packages."""

from __future__ import annotations

from gpufleet.kubernetes.operations import joining
from gpufleet.kubernetes.role import ROLE as KUBERNETES
from gpufleet.node.operations.removal import RemovalNode
from gpufleet.toolkit import operations as runtimes


def first(node: RemovalNode) -> None:
    """Take the host out of its cluster."""
    plan = node.plan.of(KUBERNETES)
    joining.forget_access("Remove the kubeconfig", plan.kubeconfig if plan.reset else None)
    joining.reset("Take the host out of its cluster", plan.reset, plan.network)


def before(node: RemovalNode) -> None:
    """Take the kubelet's settings out of containerd's configuration."""
    containerd = node.plan.of(KUBERNETES).containerd
    runtimes.configure("Restore containerd's configuration", node.facts, containerd)
