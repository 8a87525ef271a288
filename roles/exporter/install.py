"""Installs the exporter of GPU metrics on one host, in this order."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.exporter import operations as exporter
from gpufleet.exporter.plan import ExporterPlan
from gpufleet.exporter.role import ROLE as EXPORTER
from gpufleet.exporter.role import conclude_exporter
from gpufleet.host import files
from gpufleet.host.operation import Later, host_role
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import RunNode
from gpufleet.packages.operations import transaction as packages
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.result import RoleResult


def install(node: RunNode) -> None:
    """Apply the exporter's plan to `node`; does nothing if no exporter is enabled."""
    plan = node.plan.of(EXPORTER)
    if plan and not _settled(node, plan):
        _apply(node, plan)


def _settled(node: RunNode, plan: ExporterPlan) -> bool:
    """True if no step has work to do. Even then, steps cost more than asking the host."""
    if not plan.converged:
        return False
    return provenance.is_current(node, _result(node, plan, ()))


def _result(
    node: RunNode, plan: ExporterPlan, found: Sequence[Later[PackageTransaction]]
) -> RoleResult:
    asked = [each.value for each in found]
    version, waits = node.driver_version, node.waits_for_reboot
    return conclude_exporter(node.settings.of(EXPORTER), node.facts, plan, version, waits, asked)


@host_role("Exporter")
def _apply(node: RunNode, plan: ExporterPlan) -> None:
    found: list[Later[PackageTransaction]] = []

    exporter.fetch_image("Pull the exporter's image", plan)
    files.write_files("Configure the exporter", node.facts, plan.files)
    for wanted in plan.packages:  # the exporter's packages depend on DCGM's
        asked = packages.resolve_and_download(f"Resolve and download {wanted.title}", wanted)
        packages.install_packages(f"Install {wanted.title}", wanted, asked)
        found.append(asked)
    if plan.packages:
        packages.hold_packages("Hold the packages", plan.packages[0], plan.hold, plan.prerequisites)
    exporter.stop_exporter("Stop the previous exporter", plan.retire)
    exporter.start_exporter(
        "Start the exporter and check its metrics",
        plan,
        len(node.facts.gpus),
        plan.restart,
        lambda: not node.waits_for_reboot,
    )
    provenance.record_role("Record what was installed", node, lambda: _result(node, plan, found))
