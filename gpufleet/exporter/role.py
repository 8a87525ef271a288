"""The exporter as a role of a node. Pure."""

from __future__ import annotations

from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.exporter.files import UNIT_FILE, drop_in, own_pids
from gpufleet.exporter.model import ExporterPlan
from gpufleet.exporter.models import ExporterCatalog
from gpufleet.exporter.plan import plan_exporter
from gpufleet.exporter.record import ExporterEntry
from gpufleet.exporter.removal import ExporterRemoval, plan_exporter_removal
from gpufleet.exporter.settings import ExporterSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.role.protocol import RemovalContext, Role, RoleContext, named


class ExporterRole(Role[ExporterSettings, ExporterPlan, ExporterEntry]):
    """The exporter of GPU metrics."""

    name = "exporter"
    settings = ExporterSettings
    entry = ExporterEntry

    def ports(self, settings: ExporterSettings) -> tuple[int, ...]:
        return (settings.port,) if settings.enabled else ()

    def spared(self, context: RoleContext) -> frozenset[int]:
        return own_pids(context.facts, context.catalog)

    def plan(
        self, settings: ExporterSettings, context: RoleContext
    ) -> tuple[ExporterPlan | None, tuple[Finding, ...]]:
        return plan_exporter(settings, context)

    def converged(self, plan: ExporterPlan, driver: str | None) -> bool:
        return plan.converged

    def steps(self, plan: ExporterPlan, context: RoleContext) -> list[str]:
        done: dict[str, object] = {
            f"install {', '.join(family.packages)} at {family.prefix}": family.needed
            for family in plan.packages
        }
        done |= {
            "hold the exporter's packages": plan.hold,
            f"write {', '.join(file.path for file in plan.files)}": plan.files,
            f"stop {', '.join(plan.retire)}": plan.retire,
            f"start {', '.join(plan.units)} on {plan.address}": not plan.converged,
        }
        return named(self.name, done)

    def describe(self, plan: ExporterPlan) -> dict[str, Any]:
        return {
            "mode": plan.mode,
            "version": plan.choice.version,
            "dcgm": plan.choice.dcgm,
            "image": plan.choice.image if plan.mode == "docker" else None,
            "packages": [name for family in plan.packages for name in family.packages],
            "address": plan.address,
            "files": [file.path for file in plan.files],
            "units": list(plan.units),
            "restart": plan.restart,
            "reasons": list(plan.reasons),
        }

    def versions(self, plan: ExporterPlan, entry: ExporterEntry) -> tuple[str | None, str | None]:
        return entry.version, plan.choice.version

    def files(self, plan: ExporterPlan) -> tuple[FileWrite, ...]:
        return plan.files

    def installs(self, plan: ExporterPlan) -> bool:
        return plan.changes_packages

    def services(self, entry: ExporterEntry) -> tuple[str, ...]:
        return tuple(entry.units)

    def removal(
        self, settings: ExporterSettings, context: RemovalContext[ExporterEntry]
    ) -> ExporterRemoval:
        return plan_exporter_removal(context)

    def main_packages(self, catalog: ExporterCatalog) -> tuple[str, ...]:
        return catalog.exporter.packages.exporter

    def began(
        self,
        facts: NodeFacts,
        written: tuple[str, ...],
        images: tuple[str, ...],
        catalog: ExporterCatalog,
    ) -> bool:
        """A container needs no packages."""
        return bool(images) or any(path in (UNIT_FILE, drop_in(catalog)) for path in written)


ROLE = ExporterRole()
