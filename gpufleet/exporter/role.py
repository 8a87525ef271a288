"""The exporter as a role of a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.exporter.files import UNIT_FILE, exporter_drop_in, exporter_units, in_words, own_pids
from gpufleet.exporter.models import ExporterCatalog, ExporterEntry
from gpufleet.exporter.plan import ExporterPlan, plan_exporter
from gpufleet.exporter.settings import ExporterSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.holds import still_held
from gpufleet.packages.transaction import PackageTransaction, repository_answer
from gpufleet.role.impact import Impact
from gpufleet.role.protocol import Removal, RemovalContext, Role, RoleContext, prefix_role
from gpufleet.role.result import RoleResult, file_digests


@dataclass(frozen=True, slots=True)
class ExporterRemoval(Removal):
    """The removal of the exporter, in addition to its packages and files."""

    units: tuple[str, ...] = ()  # to stop and disable
    images: bool = False  # docker may have pulled some
    findings: tuple[Finding, ...] = ()

    def before(self) -> Mapping[str, object]:
        return {f"stop {', '.join(self.units)}": self.units}

    def describe(self) -> dict[str, Any]:
        return {"exporter": list(self.units)}


class ExporterRole(Role[ExporterSettings, ExporterPlan, ExporterEntry]):
    """The exporter of GPU metrics."""

    name = "exporter"
    need_driver = ("start ",)
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
        done: dict[str, object] = {}
        for each in plan.packages:
            version = f"{each.version or each.branch}{repository_answer(each)}"
            step = f"install {', '.join(each.packages)} at {version}"
            done[step] = each.needed
        done |= {
            "hold the exporter's packages": plan.hold,
            f"write {', '.join(file.path for file in plan.files)}": plan.files,
            f"stop {', '.join(plan.retire)}": plan.retire,
            f"start {', '.join(plan.units)} on {plan.address}": not plan.converged,
        }
        return prefix_role(self.name, done)

    def outcome(
        self, settings: ExporterSettings, plan: ExporterPlan, context: RoleContext
    ) -> RoleResult:
        return conclude_exporter(settings, context.facts, plan, context.driver, waits=False)

    def describe(self, plan: ExporterPlan) -> dict[str, Any]:
        return {
            "mode": plan.mode,
            "version": plan.choice.version,
            "dcgm": plan.choice.dcgm,
            "image": plan.choice.image if plan.mode == "docker" else None,
            "packages": [name for each in plan.packages for name in each.packages],
            "address": plan.address,
            "files": [file.path for file in plan.files],
            "units": list(plan.units),
            "restart": plan.restart,
            "reasons": list(plan.reasons),
        }

    def described(self, facts: NodeFacts, catalog: Any) -> Iterable[tuple[str, Any]]:
        yield "collectors", [in_words([daemon], catalog) for daemon in facts.collectors]

    def versions(self, plan: ExporterPlan, entry: ExporterEntry) -> tuple[str | None, str | None]:
        return entry.version, plan.choice.version

    def files(self, plan: ExporterPlan) -> tuple[FileWrite, ...]:
        return plan.files

    def impact(self, plan: ExporterPlan, context: RoleContext) -> Impact:
        services = context.facts.services
        there = (unit for unit in (*plan.retire, *plan.units) if unit in services)
        running = (unit for unit in there if not plan.converged and services[unit].runs)
        return Impact(dict.fromkeys(running))

    def transactions(self, plan: ExporterPlan) -> tuple[PackageTransaction, ...]:
        return plan.packages

    def with_transactions(
        self, plan: ExporterPlan, found: Sequence[PackageTransaction]
    ) -> ExporterPlan:
        return replace(plan, packages=tuple(found))

    def services(self, entry: ExporterEntry) -> tuple[str, ...]:
        return tuple(entry.units)

    def removal(
        self, settings: ExporterSettings, context: RemovalContext[ExporterEntry]
    ) -> ExporterRemoval:
        """The removal of the exporter's units of every mode that it had. Removes DCGM last."""
        entry, catalog = context.entry, context.catalog
        if not entry.exists:
            return ExporterRemoval()
        packaged = context.recorded or entry.added  # otherwise the user's
        systemd = reversed(exporter_units("systemd", catalog)) if packaged else ()
        mine = (*exporter_units("docker", catalog), *systemd)
        there = tuple(unit for unit in mine if unit in context.facts.services)
        return ExporterRemoval(there, images=True)

    def main_packages(self, catalog: ExporterCatalog) -> tuple[str, ...]:
        return catalog.exporter.packages.exporter

    def began(
        self,
        facts: NodeFacts,
        written: tuple[str, ...],
        images: tuple[str, ...],
        catalog: ExporterCatalog,
    ) -> bool:
        """True if an interrupted run began the installation. A container needs no packages."""
        own = (UNIT_FILE, exporter_drop_in(catalog))
        return bool(images) or any(path in own for path in written)


def conclude_exporter(
    settings: ExporterSettings,
    facts: NodeFacts,
    plan: ExporterPlan,
    driver: str | None,
    waits: bool,
    found: Sequence[PackageTransaction | None] = (),
) -> RoleResult:
    """The host's result. `driver`: the loaded version; `waits`: a reboot must load it; `found`: for
    each transaction of the plan, the transaction that ran."""
    old, there = facts.provenance.entry(ExporterEntry), facts.packages
    names = [name for each in plan.packages for name in each.packages if name in there]
    packages = {name: there[name].version for name in names}
    for each in found:
        packages |= dict(each.install) if each else {}
    version = plan.before or plan.choice.version
    if found and found[-1]:
        version = found[-1].version or version
    entry = ExporterEntry(
        mode=plan.mode,
        version=version,
        dcgm=plan.choice.dcgm,
        image=plan.choice.image if plan.mode == "docker" else None,
        listen=plan.address,
        metrics=f"http://{plan.reachable}/metrics",
        units=list(plan.units),
        # the running configuration and its driver; unset until the exporter is started
        configuration=None if waits or plan.waits else plan.configuration,
        driver=driver,
        # packages of an exporter that is now a container stay until the removal
        packages=packages or old.packages,
        held=bool(settings.hold and packages) or still_held(old, facts, moved=any(found)),
    )
    need = "run again after the reboot: the exporter is not started"
    files = file_digests(plan.wanted_files)  # all have gpufleet's name
    return RoleResult(entry, files, version, needs=(need,) if waits else ())


ROLE = ExporterRole()
