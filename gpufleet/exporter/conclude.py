"""Results of the exporter role for the record on the host and for the report."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.exporter.model import ExporterPlan
from gpufleet.exporter.record import ExporterEntry
from gpufleet.exporter.settings import ExporterSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.packages.added import carried
from gpufleet.packages.job import Found
from gpufleet.packages.transaction import still_held
from gpufleet.role.result import RoleResult, digests


def conclude(
    settings: ExporterSettings,
    facts: NodeFacts,
    plan: ExporterPlan,
    driver: str | None,
    waits: bool,
    found: Sequence[Found | None] = (),
) -> RoleResult:
    """What the host has now. `driver`: the loaded version; `waits`: a reboot must load it;
    `found`: by package family."""
    old = facts.provenance.entry(ExporterEntry)
    packages = _versions(facts, plan, found)
    version = plan.choice.version
    exporter = found[-1] if found else None
    if plan.mode == "systemd" and exporter:
        version = exporter.transaction.version
    elif plan.before:
        version = plan.before
    entry = ExporterEntry(
        mode=plan.mode,
        version=version,
        dcgm=plan.choice.dcgm,
        image=plan.choice.image if plan.mode == "docker" else None,
        listen=plan.address,
        metrics=f"http://{plan.reachable}/metrics",
        units=list(plan.units),
        # what runs, and with which driver: unset until the exporter is started
        configuration=None if waits or plan.waits else plan.configuration,
        driver=driver,
        # packages of an exporter that is a container now stay until the removal
        packages=packages or old.packages,
        held=bool(settings.hold and packages) or still_held(old, facts, moved=any(found)),
    )
    need = "run again after the reboot: the exporter is not started"
    files = digests(plan.wanted_files)  # all have gpufleet's name
    return RoleResult(carried(entry, old), files, version, needs=(need,) if waits else ())


def _versions(
    facts: NodeFacts, plan: ExporterPlan, found: Sequence[Found | None]
) -> dict[str, str]:
    there = facts.packages
    versions = {
        name: there[name].version
        for family in plan.packages
        for name in family.packages
        if name in there
    }
    for each in found:
        versions |= dict(each.transaction.install) if each else {}
    return versions
