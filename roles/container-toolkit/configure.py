"""The NVIDIA container toolkit on one host: what is carried out, in order."""

from __future__ import annotations

from importlib import import_module

from gpufleet.host.operation import role
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import Node
from gpufleet.packages.archives import NO_ARCHIVES
from gpufleet.packages.operations import archives, repository
from gpufleet.packages.operations import transaction as packages
from gpufleet.toolkit import operations as runtimes
from gpufleet.toolkit.plan import ToolkitPlan
from gpufleet.toolkit.record import ToolkitEntry

conclude = import_module("gpufleet.roles.container-toolkit.conclude")
jobs = import_module("gpufleet.roles.container-toolkit.job")


@role("Container toolkit")
def configure(node: Node) -> None:
    """Bring the toolkit and the runtimes of `node` to their plan; see the plan for what that is."""
    plan = node.plan.toolkit
    if plan is None:
        return
    job = jobs.toolkit_job(node, plan)
    # with a driver to look after, its role has done this already
    gone = node.plan.archives if node.plan.driver is None else NO_ARCHIVES
    settled = not gone.needed and _settled(node, plan)
    if settled and provenance.is_current(node, conclude.conclude(node, plan)):
        return  # steps that have nothing to do cost more than asking the host
    by_key = {runtime.key: runtime for runtime in plan.runtimes}

    archives.use(
        "Switch repositories that are gone to their archives",
        node.facts,
        gone,
        node.settings.driver.lock_timeout,
    )
    repository.trust("Trust the toolkit's repository", plan.repository, "toolkit", job.lock_timeout)
    found = packages.look_up("Find the toolkit in the repositories and fetch it", job)
    packages.install("Install the toolkit packages at one version", job, found)
    plugin = () if job.needed else plan.prerequisites
    packages.hold(
        "Hold the toolkit packages", job.manager, plan.hold, job.lock_timeout, plugin, job.record
    )
    runtimes.configure("Configure docker", node.facts, by_key.get("docker"))
    runtimes.configure("Configure containerd", node.facts, by_key.get("containerd"))
    runtimes.configure("Configure CRI-O", node.facts, by_key.get("crio"))
    runtimes.configure("Configure k3s", node.facts, by_key.get("k3s"))
    runtimes.configure("Configure RKE2", node.facts, by_key.get("rke2"))
    runtimes.describe_devices("Describe the GPUs for CDI", plan.cdi, lambda: node.driver_version)
    written = {runtime.key for runtime in plan.runtimes if runtime.changes}
    provenance.record(
        "Record what was installed",
        node,
        ToolkitEntry,
        lambda: conclude.conclude(node, plan, found.value),
        sorted(written | set(node.facts.noted_runtimes)),
    )


def _settled(node: Node, plan: ToolkitPlan) -> bool:
    """Whether no step of this role has anything to do, whatever the driver role does before it."""
    driver_moves = node.plan.driver is not None and not node.plan.driver.converged
    return not driver_moves and plan.converged(node.driver_version)
