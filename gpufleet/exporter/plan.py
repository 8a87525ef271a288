"""The exporter plan of one host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from ipaddress import ip_address

from gpufleet.core.findings import Finding, as_warnings
from gpufleet.core.versions import version_tuple
from gpufleet.exporter import findings as found
from gpufleet.exporter.counters import load_counters
from gpufleet.exporter.counters_file import counters_csv
from gpufleet.exporter.files import (
    SYSTEMD,
    Mode,
    digest,
    exporter_files,
    in_words,
    other_daemons,
    own_daemons,
    units,
)
from gpufleet.exporter.model import ExporterPlan
from gpufleet.exporter.models import ExporterCatalog
from gpufleet.exporter.record import ExporterEntry
from gpufleet.exporter.resolve import ExporterChoice, resolve_exporter
from gpufleet.exporter.settings import OUR_COUNTERS, ExporterSettings
from gpufleet.facts.distribution import code_of
from gpufleet.facts.gpu_work import in_containers
from gpufleet.facts.model import Listener, NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.host.notices import reload_waits
from gpufleet.packages.transaction import Family, lock_plugin, to_hold
from gpufleet.role.protocol import RoleContext


def plan_exporter(
    settings: ExporterSettings, context: RoleContext
) -> tuple[ExporterPlan | None, tuple[Finding, ...]]:
    """The exporter plan of one host, and findings. Never raises.

    There is no plan if the settings disable it, or if an obstacle prevents it: a blocker with
    exporter_enabled = True, at most a warning with "auto".
    """
    facts = context.facts
    catalog: ExporterCatalog = context.catalog
    if settings.enabled is False:
        return None, ()
    if settings.enabled == "auto" and facts.kubelet:
        return None, (_left_to_cluster(facts),)
    choice = resolve_exporter(
        catalog,
        distribution=code_of(facts.os, catalog.distributions),
        branch=int(context.branch) if re.fullmatch(r"\d{1,9}", context.branch) else 0,
        devices=[gpu.device for gpu in facts.gpus],
        settings=settings,
    )
    mode, reason, problems = _mode(settings, choice, context)
    problems = (*_rivals(settings, facts, catalog), *problems, *choice.findings)
    if any(problem.blocks for problem in problems):
        if settings.enabled == "auto":
            problems = as_warnings(problems)
        return None, problems
    wanted = settings.model_copy(update={"counters": _counters(settings, facts, catalog, choice)})
    plan = _plan(wanted, choice, mode, context)
    plan = replace(plan, reasons=(choice.reason, reason))
    waiting = (reload_waits(plan.units[-1]),) if plan.waits else ()
    return plan, (*problems, *_closed(settings), *waiting)


def _counters(
    settings: ExporterSettings, facts: NodeFacts, catalog: ExporterCatalog, choice: ExporterChoice
) -> str | None:
    """The list for this exporter and these GPUs; None: the exporter's own."""
    if settings.counters != OUR_COUNTERS:
        return settings.counters
    found = {gen.name for gpu in facts.gpus if (gen := catalog.generation(gpu.device))}
    known = all(catalog.generation(gpu.device) for gpu in facts.gpus)
    return counters_csv(load_counters(), choice.version, found if known else ())


def _left_to_cluster(facts: NodeFacts) -> Finding:
    ours = facts.provenance.entry(ExporterEntry).exists
    left = " The one that gpufleet installed earlier is not changed." if ours else ""
    return found.LEFT_TO_CLUSTER(left=left)


def _mode(
    settings: ExporterSettings, choice: ExporterChoice, context: RoleContext
) -> tuple[Mode, str, tuple[Finding, ...]]:
    """The exporter's mode, the reason, and findings."""
    facts = context.facts
    catalog: ExporterCatalog = context.catalog
    without = "" if context.branch.isdigit() else "there is no NVIDIA driver"
    refused = without or choice.no_packages or _no_repository(context)
    undockered = without or _undockered(context)
    conflicts = [name for name in catalog.exporter.packages.conflicts if name in facts.packages]
    if settings.mode == "systemd":
        if refused:
            or_else = "" if not undockered else f" (now {undockered})"
            why = found.NO_PACKAGES(mode='"systemd"', why=refused, or_else=or_else)
            return "systemd", "", (why,)
        other = (found.OTHER_DCGM(packages=", ".join(conflicts)),) if conflicts else ()
        return "systemd", "Packages are requested (exporter_mode).", other
    if settings.mode == "docker":
        problem = (found.NO_DOCKER(why=undockered, packages=""),) if undockered else ()
        return "docker", "A container is requested (exporter_mode).", problem
    refused = refused or (f"{', '.join(conflicts)} is installed" if conflicts else "")
    before = facts.provenance.entry(ExporterEntry)
    if before.mode == "docker" and not undockered:
        return "docker", "It already runs as a container.", ()
    if not refused:
        return "systemd", "Packages are available for this host.", ()
    if undockered:
        problem = (found.NO_DOCKER(why=undockered, packages=f" Nor are packages: {refused}."),)
        return "docker", "", problem
    return "docker", f"No packages: {refused}.", ()


def _undockered(context: RoleContext) -> str:
    """Why docker cannot run containers with GPUs after the toolkit's run; "" if it can."""
    facts = context.facts
    if "docker" not in facts.runtimes:
        return "docker is not installed"
    config = facts.texts.get(facts.runtimes["docker"].config_path, "")
    if "docker" in context.served or '"nvidia"' in config:
        return ""
    return "docker does not get the runtime nvidia"


def _no_repository(context: RoleContext) -> str:
    if context.repository:
        return ""
    return (
        "they are in NVIDIA's repository, which the host does not have; it is not added, because "
        "its driver packages could replace a driver from another source"
    )


def _rivals(
    settings: ExporterSettings, facts: NodeFacts, catalog: ExporterCatalog
) -> tuple[Finding, ...]:
    """Blockers if another process collects metrics, or listens on the exporter's address."""
    others = other_daemons(facts, catalog)
    if others:
        return (found.COLLECTED_ALREADY(who=in_words(others, catalog)),)
    own = own_daemons(facts, catalog)
    for listener in facts.listeners:
        taken = listener.port == settings.port and _overlap(listener.address, settings.listen)
        if taken and (listener.daemon is None or listener.daemon.pid not in {d.pid for d in own}):
            return (found.PORT_TAKEN(who=_who(listener, catalog), address=settings.address),)
    return ()


def _who(listener: Listener, catalog: ExporterCatalog) -> str:
    return in_words([listener.daemon], catalog) if listener.daemon else "a kernel process"


def _overlap(there: str, wanted: str) -> bool:
    """Whether two addresses conflict on one port; :: includes IPv4."""
    first, second = ip_address(there), ip_address(wanted)
    if first == second:
        return True
    same = first.version == second.version
    return any(one.is_unspecified and (same or one.version == 6) for one in (first, second))


def _closed(settings: ExporterSettings) -> Iterator[Finding]:
    if ip_address(settings.listen).is_loopback:
        yield found.LOOPBACK(address=settings.address)


def _plan(
    settings: ExporterSettings, choice: ExporterChoice, mode: Mode, context: RoleContext
) -> ExporterPlan:
    facts = context.facts
    catalog: ExporterCatalog = context.catalog
    families = _families(settings, facts, choice) if mode == "systemd" else ()
    names = tuple(name for family in families for name in family.packages)
    moves = any(family.needed for family in families)
    plugin = lock_plugin(facts, catalog, hold=settings.hold) if names else ()
    hold = to_hold(names, facts, moves=moves or bool(plugin)) if settings.hold else ()
    wanted = exporter_files(mode, settings, choice, catalog)
    record = facts.provenance.entry(ExporterEntry)
    right = record.configuration == digest(wanted) and record.driver in (
        None,
        context.driver,
    )
    other: Mode = "docker" if mode == "systemd" else "systemd"
    own = {daemon.unit for daemon in own_daemons(facts, catalog)}
    files = tuple(file for file in wanted if not file.is_on(facts))
    runs = all(_runs(facts, unit) for unit in units(mode, catalog))
    changed = _unit_changes(units(mode, catalog)[-1], files, facts)
    waits = changed and runs and not moves and in_containers(facts, context.spared)
    return ExporterPlan(
        choice=choice,
        mode=mode,
        address=settings.address,
        packages=families,
        before=_version(choice.exporter_packages, facts) if families else None,
        repository=context.repository if families else None,
        prerequisites=plugin,
        hold=hold,
        wanted_files=wanted,
        files=files,
        units=units(mode, catalog),
        retire=tuple(
            unit
            for unit in units(other, catalog)
            if record.mode == other and (unit in own or _runs(facts, unit))
        ),
        restart=not (waits or (right and runs and not (files or moves or changed))),
        waits=waits,
        reasons=(),
    )


def _unit_changes(unit: str, files: Sequence[FileWrite], facts: NodeFacts) -> bool:
    """Whether the unit's file changes in this run, or did and systemd has not read it."""
    service = facts.services.get(unit)
    return bool(service and service.changed) or any(SYSTEMD in file.path for file in files)


def _runs(facts: NodeFacts, unit: str) -> bool:
    return unit in facts.services and facts.services[unit].runs


def _families(
    settings: ExporterSettings, facts: NodeFacts, choice: ExporterChoice
) -> tuple[Family, ...]:
    """DCGM's packages and the exporter's; installed newer ones stay unless a version is set."""
    names = choice.exporter_packages
    there = _version(names, facts)
    asked = settings.version or settings.dcgm_version
    newer = bool(there) and version_tuple(there or "")[:3] > version_tuple(choice.version)
    dcgm, prefix = choice.dcgm, choice.version
    if newer and not asked:
        dcgm, prefix = _version(choice.dcgm_packages, facts) or dcgm, there or prefix
    installed = tuple(name for name in names if name in facts.packages)
    sort = tuple(
        name
        for name in sorted(facts.packages)
        if name.startswith(choice.dcgm_packages[0].rsplit("-", 1)[0])
    )
    return (
        _needed(Family("DCGM", choice.dcgm_packages, dcgm, True, sort), facts),
        _needed(Family("dcgm-exporter", names, prefix, False, installed), facts),
    )


def _version(names: Sequence[str], facts: NodeFacts) -> str | None:
    versions = [facts.packages[name].upstream for name in names if name in facts.packages]
    return max(versions, key=version_tuple, default=None)


def _needed(family: Family, facts: NodeFacts) -> Family:
    """The family, with whether the host lacks some of it."""

    def fits(name: str) -> bool:
        package = facts.packages.get(name)
        if package is None or package.state != "installed":
            return False
        version, prefix = package.upstream, family.prefix
        return version == prefix or (not family.exact and version.startswith(f"{prefix}."))

    return replace(family, needed=not all(fits(name) for name in family.packages))
