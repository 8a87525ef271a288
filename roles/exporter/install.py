"""The exporter of GPU metrics on one host: what is carried out, in order."""

from __future__ import annotations

from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.exporter import operations as exporter
from gpufleet.exporter.conclude import conclude
from gpufleet.exporter.job import exporter_jobs
from gpufleet.exporter.role import ROLE as EXPORTER
from gpufleet.host import files
from gpufleet.host.operation import Later, role
from gpufleet.node.catalog import load_catalog
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import Node
from gpufleet.packages.job import Found
from gpufleet.packages.operations import transaction as packages
from gpufleet.role.result import RoleResult


@role("Exporter")
def install(node: Node) -> None:
    """Apply the exporter's plan to `node`; does nothing where no exporter is enabled."""
    plan, settings = node.plan.of(EXPORTER), node.settings.of(EXPORTER)
    if plan is None:
        return
    jobs = exporter_jobs(node.facts, plan, load_catalog(), node.settings.host.lock_timeout)
    driver = node.plan.of(DRIVER)
    moves = driver is not None and not driver.converged
    found: list[Later[Found]] = []

    def result() -> RoleResult:
        asked = [each.value for each in found]
        version, waits = node.driver_version, node.waits_for_reboot
        return conclude(settings, node.facts, plan, version, waits, asked)

    settled = plan.converged and not moves
    if settled and provenance.is_current(node, result()):
        return  # steps that have nothing to do cost more than asking the host

    exporter.fetch_image("Pull the exporter's image", plan)
    files.write("Configure the exporter", node.facts, plan.files)
    for job in jobs:  # the exporter's packages want DCGM's to be there
        asked = packages.resolve_and_download(f"Resolve and download {job.family.title}", job)
        packages.install(f"Install {job.family.title}", job, asked)
        found.append(asked)
    if jobs:
        packages.hold("Hold the packages", jobs[0], plan.hold, plan.prerequisites)
    exporter.stop("Stop the previous exporter", plan.retire)
    exporter.start(
        "Start the exporter and check its metrics",
        plan,
        len(node.facts.gpus),
        plan.restart or plan.changes_packages or bool(plan.files) or moves,
        lambda: not node.waits_for_reboot,
    )
    provenance.record("Record what was installed", node, result)
