"""What gpufleet brought to a host and takes away again: by the host's record, and by what runs
that did not come to their end wrote down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.node_roles import NODE_ROLES
from gpufleet.driver.disruption import gpu_work
from gpufleet.driver.files import MODPROBE_FILE
from gpufleet.driver.record import DriverEntry
from gpufleet.exporter.files import own_pids, units
from gpufleet.exporter.record import ExporterEntry
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import Entry
from gpufleet.host.findings import machine as findings
from gpufleet.node import findings as found
from gpufleet.node.catalog import Catalog
from gpufleet.node.settings import NodeSettings
from gpufleet.node.unfinished import NOTHING_LEFT, Unfinished, completed
from gpufleet.packages.added import unsure
from gpufleet.role.listing import node_roles
from gpufleet.toolkit.record import ToolkitEntry
from gpufleet.toolkit.role import ROLE as TOOLKIT
from gpufleet.toolkit.runtime_model import RuntimePlan
from gpufleet.toolkit.runtime_removal import plan_runtime_removal
from gpufleet.toolkit.settings import ToolkitSettings

PERSISTENCE_OVERRIDE = "/etc/systemd/system/nvidia-persistenced.service.d/gpufleet.conf"
ROLES = tuple(reversed(NODE_ROLES))  # in the order of their removal
LOADED_NAMES = ("nvidia", "nvidia_uvm")  # where an old record does not name them


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is there of a role's entry in the host's record; `version` is None where nothing is.

    `stays`: its packages were all there before.
    """

    version: str | None
    stays: bool = False

    @property
    def movement(self) -> dict[str, str | None]:
        """`before` and `after` of the removal, for the report."""
        return {"before": self.version, "after": self.version if self.stays else None}


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """What is taken away, in this order; all empty where there is nothing of gpufleet's."""

    owns: bool = False  # there is something of gpufleet's
    exporter: tuple[str, ...] = ()  # units to stop for good
    images: bool = False  # docker may have pulled some for the exporter
    modules: tuple[str, ...] = ()  # to load again where one of them cannot be unloaded
    unload: bool = False
    prerequisites: tuple[str, ...] = ()  # modules of the kernel's own that the driver loaded
    runtimes: tuple[RuntimePlan, ...] = ()
    specs: tuple[str, ...] = ()  # CDI specs that are there because of gpufleet
    units: tuple[str, ...] = ()  # that would write it again; they go with their package
    held: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()  # that were not there before
    files: tuple[tuple[str, str], ...] = ()  # path, sha256 of what gpufleet wrote
    written: tuple[str, ...] = ()  # further files, of which the host itself knows the sha256
    initramfs: str = ""  # file that it must not hold any more
    findings: tuple[Finding, ...] = ()
    roles: tuple[tuple[str, Recorded], ...] = ()  # by name

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """What stops the host before anything is removed."""
        return tuple(finding for finding in self.findings if finding.blocks)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that go."""
        return tuple(dict.fromkeys([*(path for path, _ in self.files), *self.written]))

    def describe(self) -> dict[str, Any]:
        """The plan as data for the JSON report."""
        return {
            "steps": self.steps(),
            "runtimes": {runtime.key: runtime.describe() for runtime in self.runtimes},
            "cdi": list(self.specs),
            "exporter": list(self.exporter),
            "packages": list(self.packages),
            "files": list(self.paths),
            "unload": self.unload,
        }

    def steps(self) -> list[str]:
        """What would be done, a sentence each; nothing where there is no record."""
        taken = [runtime.key for runtime in self.runtimes if runtime.change]
        done = {
            "unload the NVIDIA modules": self.unload,
            f"stop {', '.join(self.exporter)}": self.exporter,
            f"take nvidia out of {', '.join(taken)}": taken,
            f"remove the CDI spec {', '.join(self.specs)}": self.specs,
            f"release and remove the packages {', '.join(self.packages)}": self.packages,
            f"remove {', '.join(self.paths)}": self.paths,
            f"rebuild the initramfs without {self.initramfs}": self.initramfs,
            "remove the record": self.owns,
        }
        return [f"removal: {step}" for step, needed in done.items() if needed]


def plan_removal(
    settings: NodeSettings, facts: NodeFacts, catalog: Catalog, left: Unfinished = NOTHING_LEFT
) -> RemovalPlan:
    """The removal of what the host's record names, and of what runs began and did not end."""
    if not (facts.provenance.exists or left.there):
        return RemovalPlan(findings=(findings.NO_RECORD(),))
    entries = completed(left, facts, catalog)
    driver = entries.get(DriverEntry.role)
    known = driver if isinstance(driver, DriverEntry) else DriverEntry()
    runtimes = plan_runtime_removal(settings.of(TOOLKIT), facts, catalog)
    files = _files(facts)
    added, kept, doubtful = _packages(entries, facts)
    changed = [path for path, digest in files if _differs(facts, path, digest)]
    written = (*(path for path, _ in files), *left.written)
    return RemovalPlan(
        owns=True,
        exporter=_exporter(entries.get(ExporterEntry.role), facts, catalog),
        images=ExporterEntry.role in entries,
        modules=tuple(known.load or LOADED_NAMES),
        unload=_unloads(facts, left),
        prerequisites=tuple(known.prerequisites or ()),
        runtimes=runtimes,
        specs=_specs(entries.get(ToolkitEntry.role), catalog),
        units=tuple(unit for unit in catalog.toolkit.cdi.refresh_units if unit in facts.services),
        held=_held(left, facts),
        packages=added,
        files=files,
        written=left.written,
        initramfs=MODPROBE_FILE if MODPROBE_FILE in written else "",
        findings=(
            *_work(settings, facts, catalog),
            *_containers(settings.of(TOOLKIT), runtimes, facts),
            *(finding for runtime in runtimes for finding in runtime.findings),
            *(findings.FILE_CHANGED(path=path) for path in changed),
            *((found.THERE_BEFORE(packages=", ".join(kept)),) if kept else ()),
            *((found.MAY_BE_ANOTHERS(packages=", ".join(doubtful)),) if doubtful else ()),
            *_began(entries, facts, left),
        ),
        roles=tuple((role, _recorded(entries[role], facts)) for role in ROLES if role in entries),
    )


def _unloads(facts: NodeFacts, left: Unfinished) -> bool:
    """Whether the loaded module is of a driver that goes, or that is on record."""
    ours = facts.provenance.entry(DriverEntry).exists or left.added.get(DriverEntry.role)
    return bool(ours) and facts.loaded_driver is not None


def _began(entries: Mapping[str, Entry], facts: NodeFacts, left: Unfinished) -> tuple[Finding, ...]:
    """What is said of roles that are not on record as they are."""
    recorded = facts.provenance
    there = [role.name for role in node_roles() if recorded.entry(role.entry).exists]
    roles = [role for role in reversed(ROLES) if role in left.begun]
    roles += [role for role in entries if role not in (*there, *roles)]
    if not roles and not recorded.exists:
        roles = ["what comes before the first package"]
    return (found.NOT_ENDED(roles=", ".join(roles)),) if roles else ()


def _recorded(entry: Entry, facts: NodeFacts) -> Recorded:
    """By the record and by the host: a removal that was stopped, or a user, may have taken some."""
    packages = entry.packages
    services = entry.units if isinstance(entry, ExporterEntry) else ()
    there = any(name in facts.packages for name in packages) if packages else True
    if not packages and services:
        there = any(unit in facts.services for unit in services)
    return Recorded(entry.version or None if there else None, bool(packages) and not entry.added)


def _work(settings: NodeSettings, facts: NodeFacts, catalog: Catalog) -> tuple[Finding, ...]:
    work = gpu_work(facts, own_pids(facts, catalog))
    if settings.host.allow_disruption or not (work or facts.gpu_pods):
        return ()
    names = ", ".join(str(process) for process in work[:5])
    return (findings.GPU_BUSY_REMOVAL(work=names or f"{facts.gpu_pods} pods"),)


def _containers(
    settings: ToolkitSettings, runtimes: tuple[RuntimePlan, ...], facts: NodeFacts
) -> tuple[Finding, ...]:
    """The program that a container was started by is needed to stop it, or to enter it."""
    if settings.allow_disruption:
        return ()
    there = facts.runtimes
    counts = {plan.key: there[plan.key].containers for plan in runtimes if plan.key in there}
    return tuple(
        found.CONTAINERS_RUN(runtime=key, containers=count)
        for key, count in counts.items()
        if count
    )


def _exporter(entry: Entry | None, facts: NodeFacts, catalog: Catalog) -> tuple[str, ...]:
    """The exporter's units, of both modes where it has had both; the exporter before its DCGM."""
    if entry is None:
        return ()
    on_record = facts.provenance.entry(ExporterEntry).exists
    packaged = on_record or entry.added  # else they are the user's
    systemd = reversed(units("systemd", catalog)) if packaged else ()
    return tuple(unit for unit in (*units("docker", catalog), *systemd) if unit in facts.services)


def _specs(entry: Entry | None, catalog: Catalog) -> tuple[str, ...]:
    """The spec that gpufleet made, and the one that the units of its packages made."""
    if not isinstance(entry, ToolkitEntry):
        return ()
    specs = [entry.cdi.path] if entry.cdi.created else []
    if entry.added:
        specs.append(catalog.toolkit.cdi.refresh_output)
    return tuple(dict.fromkeys(specs))


def _held(left: Unfinished, facts: NodeFacts) -> tuple[str, ...]:
    """Packages of the roles that hold theirs; what was held before is not among those begun."""
    recorded = [facts.provenance.entry(role.entry) for role in reversed(node_roles())]
    names = [name for entry in recorded if entry.held for name in entry.packages]
    names += [name for begun in left.begun.values() for name in begun if name in facts.packages]
    return tuple(dict.fromkeys(names))


def _packages(
    entries: Mapping[str, Entry], facts: NodeFacts
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Packages that came with gpufleet, those of its families that were there before, and those
    of an earlier version's record that may be another's."""
    parts = [entries[role] for role in ROLES if role in entries]
    sure = tuple(
        dict.fromkeys(
            name for part in parts for name in part.added if name not in unsure(part, facts)
        )
    )
    named = [name for part in parts for name in part.packages]
    doubtful = [name for part in parts for name in unsure(part, facts)]
    return sure, _without(named, sure), _without(doubtful, sure)


def _without(names: Iterable[str], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys(names) if name not in others)


def _files(facts: NodeFacts) -> tuple[tuple[str, str], ...]:
    """Path and sha256 of the files that gpufleet wrote, keys of repositories among them."""
    files = dict(facts.provenance.files)
    override = facts.files.get(PERSISTENCE_OVERRIDE)
    if override and override.sha256:
        files[PERSISTENCE_OVERRIDE] = override.sha256
    return tuple(files.items())


def _differs(facts: NodeFacts, path: str, digest: str) -> bool:
    there = facts.files.get(path)
    return there is not None and bool(there.sha256) and there.sha256 != digest
