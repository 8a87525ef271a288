"""Installs containerd on one host, in this order."""

from __future__ import annotations

from gpufleet.containerd import operations as containerd
from gpufleet.containerd.plan import ContainerdPlan
from gpufleet.containerd.role import ROLE as CONTAINERD
from gpufleet.containerd.role import conclude_containerd
from gpufleet.host.operation import host_role
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import RunNode
from gpufleet.packages.operations import repository
from gpufleet.packages.operations import transaction as packages


def install(node: RunNode) -> None:
    """Install containerd on `node` if a role needs it and the host lacks it."""
    plan = node.plan.of(CONTAINERD)
    if plan and plan.settles:
        _apply(node, plan)


@host_role("containerd")
def _apply(node: RunNode, plan: ContainerdPlan) -> None:
    wanted = plan.transaction
    repository.trust_repository(
        "Trust Docker's repository", plan.repository, "containerd", wanted.lock_timeout
    )
    found = packages.resolve_and_download("Resolve and download containerd", wanted)
    containerd.require_containerd("Check the version of containerd", plan, found)
    packages.install_packages("Install containerd", wanted, found)
    containerd.settle_containerd("Start containerd", plan, found, node.learn)
    provenance.record_role(
        "Record what was installed", node, lambda: conclude_containerd(plan, found.value)
    )
