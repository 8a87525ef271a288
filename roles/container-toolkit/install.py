"""The NVIDIA container toolkit on one host: what is carried out, in order."""

from __future__ import annotations

from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.host.operation import role
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import Node
from gpufleet.packages.archives import NO_ARCHIVES
from gpufleet.packages.job import Found
from gpufleet.packages.operations import archives, repository
from gpufleet.packages.operations import transaction as packages
from gpufleet.role.result import RoleResult
from gpufleet.toolkit import operations as runtimes
from gpufleet.toolkit.conclude import conclude
from gpufleet.toolkit.job import toolkit_job
from gpufleet.toolkit.plan import ToolkitPlan
from gpufleet.toolkit.role import ROLE as TOOLKIT


@role("Container toolkit")
def install(node: Node) -> None:
    """Apply the plan of the toolkit and the runtimes to `node`."""
    plan, settings = node.plan.of(TOOLKIT), node.settings.of(TOOLKIT)
    if plan is None:
        return
    job = toolkit_job(node.facts, plan, node.settings.host.lock_timeout)
    # with a driver to look after, its role has done this already
    gone = node.plan.archives if node.plan.of(DRIVER) is None else NO_ARCHIVES

    def result(found: Found | None = None) -> RoleResult:
        return conclude(settings, node.facts, plan, node.driver_version, found)

    if not gone.needed and _settled(node, plan) and provenance.is_current(node, result()):
        return  # steps that have nothing to do cost more than asking the host
    by_key = {runtime.key: runtime for runtime in plan.runtimes}

    archives.use(
        "Switch discontinued repositories to their archives",
        node.facts,
        gone,
        node.settings.host.lock_timeout,
    )
    repository.trust("Trust the toolkit's repository", plan.repository, "toolkit", job.lock_timeout)
    found = packages.resolve_and_download("Resolve and download the toolkit packages", job)
    packages.install("Install the toolkit packages", job, found)
    plugin = () if job.needed else plan.prerequisites
    packages.hold("Hold the toolkit packages", job, plan.hold, plugin)
    runtimes.configure("Configure docker", node.facts, by_key.get("docker"))
    runtimes.configure("Configure containerd", node.facts, by_key.get("containerd"))
    runtimes.configure("Configure CRI-O", node.facts, by_key.get("crio"))
    runtimes.configure("Configure k3s", node.facts, by_key.get("k3s"))
    runtimes.configure("Configure RKE2", node.facts, by_key.get("rke2"))
    runtimes.describe_devices(
        "Generate the CDI specification", plan.cdi, lambda: node.driver_version
    )
    written = {runtime.key for runtime in plan.runtimes if runtime.changes}
    provenance.record(
        "Record what was installed",
        node,
        lambda: result(found.value),
        sorted(written | set(node.facts.noted_runtimes)),
    )


def _settled(node: Node, plan: ToolkitPlan) -> bool:
    """Whether no step of this role has anything to do, whatever the driver role does before it."""
    driver = node.plan.of(DRIVER)
    return not (driver and not driver.converged) and plan.converged(node.driver_version)
