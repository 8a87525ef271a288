"""Installs the NVIDIA container toolkit on one host, in this order."""

from __future__ import annotations

from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.gpu.plan import changes_devices
from gpufleet.gpu.role import ROLE as GPU
from gpufleet.host.operation import host_role
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import RunNode
from gpufleet.packages.archives import NO_ARCHIVES, ArchivesPlan
from gpufleet.packages.operations import archives, repository
from gpufleet.packages.operations import transaction as packages
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.result import RoleResult
from gpufleet.toolkit import operations as runtimes
from gpufleet.toolkit.conclude import conclude_toolkit
from gpufleet.toolkit.plan import ToolkitPlan
from gpufleet.toolkit.role import ROLE as TOOLKIT
from gpufleet.toolkit.runtime_model import RuntimePlan


def install(node: RunNode) -> None:
    """Apply the plan of the toolkit and the runtimes; a converged host does not change."""
    plan = node.plan.of(TOOLKIT)
    if plan and not _settled(node, plan):
        _apply(node, plan)


def _settled(node: RunNode, plan: ToolkitPlan) -> bool:
    """True if no step has work to do, whatever the driver role does before. Steps cost more than
    asking the host."""
    driver = node.plan.of(DRIVER)
    if _archives(node).needed or (driver and not driver.converged):
        return False
    if changes_devices(node.plan.of(GPU)):
        return False
    return plan.converged(node.driver_version) and provenance.is_current(node, _result(node, plan))


def _archives(node: RunNode) -> ArchivesPlan:
    """The archives to switch to. If the driver role manages a driver, it has already switched."""
    return node.plan.archives if node.plan.of(DRIVER) is None else NO_ARCHIVES


def _result(
    node: RunNode, plan: ToolkitPlan, found: PackageTransaction | None = None
) -> RoleResult:
    return conclude_toolkit(node.settings.of(TOOLKIT), node.facts, plan, node.driver_version, found)


def _runtime(plan: ToolkitPlan, name: str) -> RuntimePlan | None:
    """The plan of a runtime. On a host with another containerd, k3s and RKE2 have the keys k3s,
    k3s-agent, rke2-agent and rke2-server."""
    return next((each for each in plan.runtimes if each.key.startswith(name)), None)


@host_role("Container toolkit")
def _apply(node: RunNode, plan: ToolkitPlan) -> None:
    wanted = plan.transaction

    def latest() -> ToolkitPlan:
        """The plan after the run installed containerd, if it did."""
        return node.plan.of(TOOLKIT) or plan

    archives.use_archives(
        "Switch discontinued repositories to their archives",
        node.facts,
        _archives(node),
        wanted.lock_timeout,
    )
    repository.trust_repository(
        "Trust the toolkit's repository", plan.repository, "toolkit", wanted.lock_timeout
    )
    found = packages.resolve_and_download(
        "Resolve and download the toolkit packages", wanted, node.prepared
    )
    packages.install_packages("Install the toolkit packages", wanted, found)
    plugin = () if wanted.needed else wanted.prerequisites
    packages.hold_packages("Hold the toolkit packages", wanted, plan.hold, plugin)
    runtimes.configure_runtime("Configure docker", node.facts, _runtime(plan, "docker"))
    runtimes.configure_runtime(
        "Configure containerd", node.facts, lambda: _runtime(latest(), "containerd")
    )
    runtimes.configure_runtime("Configure CRI-O", node.facts, _runtime(plan, "crio"))
    runtimes.configure_runtime("Configure k3s", node.facts, _runtime(plan, "k3s"))
    runtimes.configure_runtime("Configure RKE2", node.facts, _runtime(plan, "rke2"))
    runtimes.describe_devices(
        "Generate the CDI specification",
        plan.cdi,
        lambda: node.driver_version,
        changes_devices(node.plan.of(GPU)),
    )
    written = {runtime.key for runtime in plan.runtimes if runtime.changes}
    provenance.record_role(
        "Record what was installed",
        node,
        lambda: _result(node, latest(), found.value),
        sorted(written | set(node.facts.noted_runtimes)),
    )
