"""Installs containerd on one host, in this order."""

from __future__ import annotations

from gpufleet.containerd import operations as containerd
from gpufleet.containerd.plan import ContainerdPlan
from gpufleet.containerd.role import ROLE as CONTAINERD
from gpufleet.containerd.role import conclude
from gpufleet.host.operation import role
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import Node
from gpufleet.packages.operations import repository
from gpufleet.packages.operations import transaction as packages


def install(node: Node) -> None:
    """Install containerd on `node` if a role needs it and the host lacks it."""
    plan = node.plan.of(CONTAINERD)
    if plan and plan.settles:
        _apply(node, plan)


@role("containerd")
def _apply(node: Node, plan: ContainerdPlan) -> None:
    wanted = plan.transaction
    repository.trust(
        "Trust Docker's repository", plan.repository, "containerd", wanted.lock_timeout
    )
    found = packages.resolve_and_download("Resolve and download containerd", wanted)
    containerd.require("Check the version of containerd", plan, found)
    packages.install("Install containerd", wanted, found)
    containerd.settle("Start containerd", plan, found, node.learn)
    provenance.record("Record what was installed", node, lambda: conclude(plan, found.value))
