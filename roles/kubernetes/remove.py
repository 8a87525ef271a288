"""Steps that remove Kubernetes from one host, before its packages."""

from __future__ import annotations

from gpufleet.kubernetes.operations import control_planes, joining
from gpufleet.kubernetes.role import ROLE as KUBERNETES
from gpufleet.node.operations.removal import RemovalNode
from gpufleet.toolkit import operations as runtimes


def first(node: RemovalNode) -> None:
    """Take the host out of its cluster: workers, then control planes one by one, the first last."""
    plan = node.plan.of(KUBERNETES)
    if not plan.reset:
        return
    joining.reset_member("Take workers out of the cluster", plan.turn == "worker", plan.network)
    control_planes.leave_control_plane(
        "Take control planes out of the cluster", plan, "control-plane"
    )
    joining.forget_access("Remove the kubeconfig", plan.kubeconfig)
    control_planes.leave_control_plane(
        "Take the last control plane out of the cluster", plan, "last"
    )


def before(node: RemovalNode) -> None:
    """Take the kubelet's settings out of containerd's configuration."""
    containerd = node.plan.of(KUBERNETES).containerd
    if containerd:
        runtimes.configure_runtime("Restore containerd's configuration", node.facts, containerd)
