"""A plain run keeps an installed driver: it completes and repairs it, and says how to change it.
Pure."""

from __future__ import annotations

from dataclasses import replace

from gpufleet.core.findings import Finding, Severity
from gpufleet.core.versions import version_tuple
from gpufleet.driver.action import SOURCES, of_another_source
from gpufleet.driver.findings import host as findings
from gpufleet.driver.findings.choice import NOT_IN_CATALOG
from gpufleet.driver.plan import DriverPlan, branch_and_modules, our_packages, plan_driver
from gpufleet.driver.record import DriverEntry
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.role.protocol import RoleContext

BROKEN = "does not work: it is repaired at that version if the repository still has it"


def keep_driver(
    settings: DriverSettings, context: RoleContext, asked: DriverPlan
) -> tuple[DriverPlan | None, tuple[Finding, ...]]:
    """The plan of a run that must not change the driver, and why it differs from the settings.
    None: the driver is not touched, because its packages come from an unknown source."""
    moves = asked.before is not None and asked.action in ("upgrade", "downgrade", "replace")
    if settings.allow_change or not moves or asked.choice.blocked:
        return asked, ()
    facts = context.facts
    same = plan_driver(_as_installed(settings, asked.before or "", facts), context)
    works = _is_working(asked, same, facts)
    if not works and _is_begun(asked, same, facts):
        return asked, ()
    foreign = of_another_source(same.choice, same.packages, our_packages(facts), facts)
    stays = same.action == "none" or (same.action == "repair" and not foreign)
    if stays and not same.choice.blocked:
        known = tuple(each for each in same.findings if each.code != NOT_IN_CATALOG.code)
        return replace(same, findings=known), _kept(settings, asked, same)
    return (None, _kept(settings, asked, None)) if works else (asked, ())


def _is_working(asked: DriverPlan, same: DriverPlan, facts: NodeFacts) -> bool:
    """True if the kernel has loaded or can load the installed driver's module, and all its packages
    are completely installed."""
    module, version = facts.module_on_disk, asked.before
    flavour = facts.loaded_flavour in (None, facts.installed_flavour)
    loaded = flavour and facts.loaded_driver == version
    loadable = module is not None and module.version == version and not same.choice.blocked
    names = asked.transaction.installed
    whole = all(facts.packages[name].state == "installed" for name in names)
    return (loaded or loadable) and whole and facts.library in (None, version)


def _as_installed(settings: DriverSettings, version: str, facts: NodeFacts) -> DriverSettings:
    """The settings that request the installed driver."""
    known, record = branch_and_modules(facts), facts.provenance.entry(DriverEntry)
    ours = any(name in facts.packages for name in record.packages)
    source = (ours and record.source) or settings.source
    build = (ours and record.build) or settings.build
    return settings.model_copy(
        update={
            "version": version,
            "branch": version.split(".")[0],
            "modules": known[1] if known else "auto",
            "source": source,
            "build": build if source == "distro" else "dkms",  # unless its module came built
            "allow_unknown": True,
        }
    )


def _is_begun(asked: DriverPlan, same: DriverPlan, facts: NodeFacts) -> bool:
    """True if a run that may change the driver was interrupted: some packages are already new."""
    for name in asked.transaction.installed:
        version = facts.packages[name].upstream
        new = version != asked.before or (name in asked.packages and name not in same.packages)
        if new and asked.transaction.accepts(version):
            return True
    return False


def _kept(
    settings: DriverSettings, asked: DriverPlan, same: DriverPlan | None
) -> tuple[Finding, ...]:
    """The finding that the installed driver is kept, and how to change it. Empty if no setting
    requests another driver and the catalog would select an older one."""
    choice, before = asked.choice, asked.before or ""
    requested = settings.version or settings.branch or settings.modules != "auto" or same is None
    goal = asked.target or choice.newest_known or choice.branch
    lower = version_tuple(goal) < version_tuple(before)
    if lower and not requested:
        return ()
    options = "" if settings.version or settings.branch else f" --branch {choice.branch}"
    options += " --allow-downgrade" if lower else ""
    finding = findings.DRIVER_KEPT(
        severity=Severity.WARNING if requested else Severity.INFO,
        installed=before,
        state="works" if same is None or same.action == "none" else BROKEN,
        who="the settings select" if requested else "the catalog selects",
        wanted=f"{asked.target or f'branch {choice.branch}'} with {choice.modules} modules from "
        f"{SOURCES[choice.source]}",
        options=options,
        stay=f'driver_version = "{before}"' if same else "driver_enabled = False",
    )
    return (finding,)
