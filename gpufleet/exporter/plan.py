"""The exporter plan of one host. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address

from gpufleet.core.findings import Finding, as_warnings
from gpufleet.core.versions import version_tuple
from gpufleet.exporter import findings as found
from gpufleet.exporter.counters import counters_csv, load_counters
from gpufleet.exporter.files import (
    SYSTEMD,
    Mode,
    exporter_files,
    exporter_units,
    files_digest,
    in_words,
    own_daemons,
)
from gpufleet.exporter.models import ExporterCatalog, ExporterEntry
from gpufleet.exporter.resolve import ExporterChoice, resolve_exporter
from gpufleet.exporter.settings import OUR_COUNTERS, ExporterSettings
from gpufleet.facts.gpu_work import in_containers
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.host.notices import reload_waits
from gpufleet.packages.holds import lock_plugin, to_hold
from gpufleet.packages.repository import NO_REPOSITORY
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.protocol import RoleContext

NOT_ADDED = (
    "they are in NVIDIA's repository, which the host does not have; it is not added, because "
    "its driver packages could replace a driver from another source"
)
_LOCAL = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}


@dataclass(frozen=True, slots=True)
class ExporterPlan:
    """The steps of the exporter role for one host. An empty step does nothing."""

    choice: ExporterChoice
    mode: Mode
    address: str  # host:port of /metrics
    packages: tuple[PackageTransaction, ...]  # DCGM's, then the exporter's; empty for a container
    before: str | None  # version of the installed exporter's packages
    prerequisites: tuple[str, ...]  # version lock, if missing
    hold: tuple[str, ...]
    wanted_files: tuple[FileWrite, ...]
    files: tuple[FileWrite, ...]  # those that differ on the host
    units: tuple[str, ...]  # in start order
    retire: tuple[str, ...]  # units of the other mode that gpufleet started
    restart: bool  # the exporter does not run, or not as planned
    waits: bool  # systemd does not read its new unit file yet, because containers use GPUs
    reasons: tuple[str, ...]

    @property
    def reachable(self) -> str:
        """host:port of /metrics on the host itself."""
        host, _, port = self.address.rpartition(":")
        return f"{_LOCAL.get(host, host)}:{port}"

    @property
    def configuration(self) -> str:
        return files_digest(self.wanted_files)

    @property
    def changes_packages(self) -> bool:
        return any(each.needed for each in self.packages)

    @property
    def converged(self) -> bool:
        """True if there is nothing to do."""
        return not (self.changes_packages or self.hold or self.files or self.retire or self.restart)


def plan_exporter(
    settings: ExporterSettings, context: RoleContext
) -> tuple[ExporterPlan | None, tuple[Finding, ...]]:
    """Plan the exporter of one host, with findings. Never raises.

    Returns no plan if the settings disable it, or if an obstacle prevents it: a blocker with
    exporter_enabled = True, at most a warning with "auto".
    """
    facts = context.facts
    catalog: ExporterCatalog = context.catalog
    if settings.enabled is False:
        return None, ()
    if settings.enabled == "auto" and facts.kubelet:
        ours = facts.provenance.entry(ExporterEntry).exists
        left = " The one that gpufleet installed earlier is not changed." if ours else ""
        return None, (found.LEFT_TO_CLUSTER(left=left),)
    choice = resolve_exporter(
        catalog,
        distribution=facts.distribution or facts.os.code,
        branch=int(context.branch) if re.fullmatch(r"\d{1,9}", context.branch) else 0,
        devices=[gpu.device for gpu in facts.gpus],
        settings=settings,
    )
    mode, reason, problems = _mode(settings, choice, context)
    problems = (*_rivals(settings, facts, catalog), *problems, *choice.findings)
    if any(problem.blocks for problem in problems):
        return None, as_warnings(problems) if settings.enabled == "auto" else problems
    wanted = settings.model_copy(update={"counters": _counters(settings, facts, catalog, choice)})
    plan = _plan(wanted, choice, mode, context)
    plan = replace(plan, reasons=(choice.reason, reason))
    waiting = (reload_waits(plan.units[-1]),) if plan.waits else ()
    loopback = ip_address(settings.listen).is_loopback
    closed = (found.LOOPBACK(address=settings.address),) if loopback else ()
    return plan, (*problems, *closed, *waiting)


def _counters(
    settings: ExporterSettings, facts: NodeFacts, catalog: ExporterCatalog, choice: ExporterChoice
) -> str | None:
    """The list for this exporter and these GPUs, or None for the exporter's own list."""
    if settings.counters != OUR_COUNTERS:
        return settings.counters
    found = {gen.name for gpu in facts.gpus if (gen := catalog.generation(gpu.device))}
    known = all(catalog.generation(gpu.device) for gpu in facts.gpus)
    return counters_csv(load_counters(), choice.version, found if known else ())


def _mode(
    settings: ExporterSettings, choice: ExporterChoice, context: RoleContext
) -> tuple[Mode, str, tuple[Finding, ...]]:
    """The exporter's mode, the reason, and findings."""
    facts = context.facts
    catalog: ExporterCatalog = context.catalog
    without = "" if context.branch.isdigit() else "there is no NVIDIA driver"
    refused = without or choice.no_packages or ("" if context.repository else NOT_ADDED)
    undockered = without
    if not without and "docker" not in facts.runtimes:
        undockered = "docker is not installed"
    elif not without and "docker" not in context.served:
        config = facts.texts.get(facts.runtimes["docker"].config_path, "")
        undockered = "" if '"nvidia"' in config else "docker does not get the runtime nvidia"
    conflicts = [name for name in catalog.exporter.packages.conflicts if name in facts.packages]
    if settings.mode == "systemd":
        if refused:
            return "systemd", "", (found.CANNOT_RUN(how="from packages", why=refused),)
        other = (found.OTHER_DCGM(packages=", ".join(conflicts)),) if conflicts else ()
        return "systemd", "Packages are requested (exporter_mode).", other
    if settings.mode == "docker":
        problem = (found.CANNOT_RUN(how="in docker", why=undockered),) if undockered else ()
        return "docker", "A container is requested (exporter_mode).", problem
    refused = refused or (f"{', '.join(conflicts)} is installed" if conflicts else "")
    before = facts.provenance.entry(ExporterEntry)
    if before.mode == "docker" and not undockered:
        return "docker", "It already runs as a container.", ()
    if not refused:
        return "systemd", "Packages are available for this host.", ()
    if undockered:
        why = f"{undockered}; no packages: {refused}"
        return "docker", "", (found.CANNOT_RUN(how="in docker", why=why),)
    return "docker", f"No packages: {refused}.", ()


def _rivals(
    settings: ExporterSettings, facts: NodeFacts, catalog: ExporterCatalog
) -> tuple[Finding, ...]:
    """Blockers if another process collects metrics or listens on the exporter's address."""
    own = own_daemons(facts, catalog)
    others = [daemon for daemon in facts.collectors if daemon not in own]
    if others:
        return (found.COLLECTED_ALREADY(who=in_words(others, catalog)),)
    for listener in facts.listeners:
        taken = listener.port == settings.port and _overlap(listener.address, settings.listen)
        if taken and (listener.daemon is None or listener.daemon.pid not in {d.pid for d in own}):
            who = in_words([listener.daemon], catalog) if listener.daemon else "a kernel process"
            return (found.EXPORTER_PORT_TAKEN(who=who, address=settings.address),)
    return ()


def _overlap(there: str, wanted: str) -> bool:
    """True if two addresses conflict on one port. :: includes IPv4."""
    first, second = ip_address(there), ip_address(wanted)
    if first == second:
        return True
    same = first.version == second.version
    return any(one.is_unspecified and (same or one.version == 6) for one in (first, second))


def _plan(
    settings: ExporterSettings, choice: ExporterChoice, mode: Mode, context: RoleContext
) -> ExporterPlan:
    facts = context.facts
    catalog: ExporterCatalog = context.catalog
    plugin = lock_plugin(facts, hold=settings.hold) if mode == "systemd" else ()
    packages = _packages(settings, choice, context) if mode == "systemd" else ()
    names = tuple(name for each in packages for name in each.packages)
    moves = any(each.needed for each in packages)
    hold = to_hold(names, facts, moves=moves or bool(plugin)) if settings.hold else ()
    wanted = exporter_files(mode, settings, choice, catalog)
    record = facts.provenance.entry(ExporterEntry)
    same_driver = record.driver in (None, context.driver)
    right = same_driver and record.configuration == files_digest(wanted)
    own = {daemon.unit for daemon in own_daemons(facts, catalog)}
    other: Mode = "docker" if mode == "systemd" else "systemd"
    left = exporter_units(other, catalog) if record.mode == other else ()
    files = tuple(file for file in wanted if not file.is_on(facts))
    units = exporter_units(mode, catalog)
    runs = all(_runs(facts, unit) for unit in units)
    service = facts.services.get(units[-1])
    # changed in this run, or earlier without a reload of systemd
    changed = bool(service and service.changed) or any(SYSTEMD in file.path for file in files)
    waits = changed and runs and not moves and in_containers(facts, context.spared)
    settled = waits or (right and runs and not (files or moves or changed))
    return ExporterPlan(
        choice=choice,
        mode=mode,
        address=settings.address,
        packages=packages,
        before=_version(choice.exporter_packages, facts) if packages else None,
        prerequisites=plugin,
        hold=hold,
        wanted_files=wanted,
        files=files,
        units=units,
        retire=tuple(unit for unit in left if unit in own or _runs(facts, unit)),
        restart=context.loads_driver or not settled,
        waits=waits,
        reasons=(),
    )


def _runs(facts: NodeFacts, unit: str) -> bool:
    return unit in facts.services and facts.services[unit].runs


def _packages(
    settings: ExporterSettings, choice: ExporterChoice, context: RoleContext
) -> tuple[PackageTransaction, ...]:
    """DCGM's packages and the exporter's. Installed newer ones are kept unless a version is set."""
    facts, names = context.facts, choice.exporter_packages
    there = _version(names, facts)
    asked = settings.version or settings.dcgm_version
    newer = bool(there) and version_tuple(there or "")[:3] > version_tuple(choice.version)
    dcgm, version = choice.dcgm, choice.version
    if newer and not asked:
        dcgm, version = _version(choice.dcgm_packages, facts) or dcgm, there or version
    stem = choice.dcgm_packages[0].rsplit("-", 1)[0]
    first = PackageTransaction(
        role="exporter",
        title="DCGM",
        packages=choice.dcgm_packages,
        facts=facts,
        version=dcgm,
        installed=tuple(name for name in sorted(facts.packages) if name.startswith(stem)),
        patterns=(context.catalog.exporter.packages.family,),
        repository=context.repository or NO_REPOSITORY,
        reports=False,
        lock_timeout=context.lock_timeout,
    )
    second = replace(
        first,
        title="dcgm-exporter",
        packages=names,
        version=None,
        branch=version,  # its packages have a fourth number
        installed=tuple(name for name in names if name in facts.packages),
        reports=True,
    )
    return tuple(replace(each, needed=not _is_there(each)) for each in (first, second))


def _is_there(wanted: PackageTransaction) -> bool:
    """True if the host has all of the packages at a requested version."""
    there = [wanted.facts.packages.get(name) for name in wanted.packages]
    return all(p and p.state == "installed" and wanted.accepts(p.upstream) for p in there)


def _version(names: Sequence[str], facts: NodeFacts) -> str | None:
    versions = [facts.packages[name].upstream for name in names if name in facts.packages]
    return max(versions, key=version_tuple, default=None)
