"""The exporter of GPU metrics on one host: what is carried out, in order."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.exporter import operations as exporter
from gpufleet.exporter.conclude import conclude
from gpufleet.exporter.job import exporter_jobs
from gpufleet.exporter.model import ExporterPlan
from gpufleet.exporter.role import ROLE as EXPORTER
from gpufleet.host import files
from gpufleet.host.operation import Later, role
from gpufleet.node.catalog import load_catalog
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import Node
from gpufleet.packages.job import Found
from gpufleet.packages.operations import transaction as packages
from gpufleet.role.result import RoleResult


def install(node: Node) -> None:
    """Apply the exporter's plan to `node`; does nothing where no exporter is enabled."""
    plan = node.plan.of(EXPORTER)
    if plan and not _settled(node, plan):
        _apply(node, plan)


def _settled(node: Node, plan: ExporterPlan) -> bool:
    """Whether no step has anything to do: such steps cost more than asking the host."""
    if not plan.converged or _driver_moves(node):
        return False
    return provenance.is_current(node, _result(node, plan, ()))


def _driver_moves(node: Node) -> bool:
    """Whether the modules that the exporter uses are unloaded."""
    driver = node.plan.of(DRIVER)
    return driver is not None and (driver.changes_packages or driver.load)


def _result(node: Node, plan: ExporterPlan, found: Sequence[Later[Found]]) -> RoleResult:
    asked = [each.value for each in found]
    version, waits = node.driver_version, node.waits_for_reboot
    return conclude(node.settings.of(EXPORTER), node.facts, plan, version, waits, asked)


@role("Exporter")
def _apply(node: Node, plan: ExporterPlan) -> None:
    jobs = exporter_jobs(node.facts, plan, load_catalog(), node.settings.host.lock_timeout)
    found: list[Later[Found]] = []

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
        plan.restart or _driver_moves(node),
        lambda: not node.waits_for_reboot,
    )
    provenance.record("Record what was installed", node, lambda: _result(node, plan, found))
