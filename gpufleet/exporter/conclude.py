"""What a run of the exporter role learned: for the record on the host and for the report."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.exporter.model import ExporterPlan
from gpufleet.exporter.record import ExporterEntry
from gpufleet.exporter.settings import ExporterSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.packages.added import carried
from gpufleet.packages.job import Found
from gpufleet.role.learned import Learned, digests


def conclude(
    settings: ExporterSettings,
    facts: NodeFacts,
    plan: ExporterPlan,
    driver: str | None,
    waits: bool,
    found: Sequence[Found | None] = (),
) -> Learned:
    """What is on the host now. `driver`: version that is loaded; `waits`: for a reboot that loads
    it; `found`: by package family."""
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
        # what runs, and over which driver: none of it before the exporter could be started
        configuration=None if waits else plan.configuration,
        driver=driver,
        # of an exporter that is a container now, packages stay until they are removed
        packages=packages or old.packages,
        held=settings.hold if packages else old.held,
    )
    need = "run gpu_node again after the reboot: the exporter could not be started"
    files = digests(plan.wanted_files)  # under gpufleet's own name, all of them
    return Learned(carried(entry, old), files, version, needs=(need,) if waits else ())


def _versions(
    facts: NodeFacts, plan: ExporterPlan, found: Sequence[Found | None]
) -> dict[str, str]:
    there = facts.packages
    versions = {
        name: there[name].version
        for family in plan.packages
        for name in family.names
        if name in there
    }
    for each in found:
        versions |= dict(each.transaction.install) if each else {}
    return versions
