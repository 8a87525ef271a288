"""The container toolkit plan of one host. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from gpufleet.core.findings import Finding, Severity, as_warnings
from gpufleet.core.versions import version_tuple
from gpufleet.facts.files import TOOLKIT_BEGUN
from gpufleet.facts.model import NodeFacts, Runtime
from gpufleet.formats.edits import NotUnderstood
from gpufleet.formats.toml_text import TOML
from gpufleet.packages.holds import lock_plugin, to_hold
from gpufleet.packages.repository import RepositoryPlan, plan_repository
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.toolkit.cdi import CdiPlan, plan_cdi
from gpufleet.toolkit.engines import other_engines
from gpufleet.toolkit.findings import choice as kinds
from gpufleet.toolkit.findings import runtimes as found
from gpufleet.toolkit.findings.config import TOOLKIT_FILE_INVALID
from gpufleet.toolkit.models import ToolkitCatalog
from gpufleet.toolkit.record import CdiPart, PendingPart, ToolkitEntry, recorded_runtimes
from gpufleet.toolkit.resolve import ToolkitChoice, resolve_toolkit
from gpufleet.toolkit.runtime_model import Context, RuntimePlan
from gpufleet.toolkit.runtime_result import RUNTIME_CONFIG_PATH
from gpufleet.toolkit.runtimes import plan_runtime
from gpufleet.toolkit.settings import ToolkitSettings

UNKNOWN_VERSION_CODE = kinds.TOOLKIT_UNKNOWN_VERSION.code  # harmless if it is already installed
Action = Literal["none", "install", "upgrade", "downgrade", "repair"]


@dataclass(frozen=True, slots=True)
class ToolkitPlan:
    """The steps of the toolkit role for one host; an empty step does nothing."""

    choice: ToolkitChoice
    action: Action
    before: str | None  # version of the installed packages
    target: str  # version after the run
    transaction: PackageTransaction
    hold: tuple[str, ...]  # packages to hold
    runtimes: tuple[RuntimePlan, ...]
    cdi: CdiPlan
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def repository(self) -> RepositoryPlan:
        return self.transaction.repository

    def converged(self, driver: str | None) -> bool:
        """True if there is nothing to do while `driver` is loaded."""
        return not (
            self.transaction.needed
            or self.repository.needed
            or self.hold
            or any(r.changes or r.activation != "none" for r in self.runtimes)
            or self.cdi.stale(driver)
        )

    def record(self, driver: str | None, versions: dict[str, str]) -> ToolkitEntry:
        """The record's entry of the toolkit after the run.

        `driver`: version that is loaded then; `versions`: installed version by package.
        """
        facts, cdi = self.transaction.facts, CdiPart()
        pending = {
            each.unit: PendingPart(boot_id=facts.boot_id, started=each.started, reason=each.reason)
            for each in self.runtimes
            if each.postponed
        }
        configured = {r.key: r.as_record() for r in self.runtimes if r.managed}
        if self.cdi.keeper != "none":
            cdi = CdiPart(path=self.cdi.path, driver=driver, created=self.cdi.created)
        return ToolkitEntry(
            version=self.target,
            packages=versions,
            runtimes=recorded_runtimes(facts) | configured,
            cdi=cdi,
            pending=pending,
        )


def _is_wanted(settings: ToolkitSettings, runtime: Runtime, facts: NodeFacts) -> bool:
    """True if gpufleet configures the runtime. A containerd without a unit belongs to docker: the
    dockerd of docker's archive starts it with a file that dockerd writes."""
    if settings.runtimes == "auto":
        known = runtime.name != "containerd" or runtime.unit in facts.services
        return runtime.running or known
    return runtime.name in settings.runtimes


def plan_toolkit(
    settings: ToolkitSettings,
    facts: NodeFacts,
    catalog: ToolkitCatalog,
    systemd_cgroups: bool = False,
    lock_timeout: int = 300,
) -> ToolkitPlan:
    """The toolkit plan of one host. Reports findings; never raises.

    `systemd_cgroups`: a kubelet of this run will use systemd's control groups. `lock_timeout`:
    seconds to wait for another package manager.
    """
    place, machine = facts.distribution or facts.os.code, facts.kernel.architecture
    resolve = partial(resolve_toolkit, catalog, distribution=place, architecture=machine)
    choice = asked = resolve(settings=settings)
    there = [facts.packages[name].upstream for name in asked.packages if name in facts.packages]
    before = max(there, key=version_tuple, default=None)
    if before and _keeps(settings, asked, before, there):
        same = settings.model_copy(update={"version": before})
        choice = resolve(settings=same)
        known = tuple(each for each in choice.findings if each.code != UNKNOWN_VERSION_CODE)
        choice = replace(choice, reason=asked.reason, findings=known)
    target = choice.version
    action, reason = _action(choice, before, facts)
    repository = plan_repository(choice.repository, facts, wanted=action != "none")
    plugin = lock_plugin(facts, hold=settings.hold)
    moves = action != "none" or bool(plugin)
    # of the first run, or of one that ended before its record
    new = TOOLKIT_BEGUN in facts.texts and not facts.provenance.entry(ToolkitEntry).exists
    first = action == "install" or new
    runtimes = tuple(
        plan_runtime(Context(key, runtime, settings, facts, catalog, first, systemd_cgroups))
        for key, runtime in facts.runtimes.items()
        if _is_wanted(settings, runtime, facts)
    )
    cdi = plan_cdi(settings, facts, catalog, target)
    config = facts.files.get(RUNTIME_CONFIG_PATH)
    transaction = PackageTransaction(
        role="toolkit",
        title="toolkit",
        packages=choice.packages,
        facts=facts,
        version=target,
        needed=action != "none",
        installed=tuple(name for name in choice.packages if name in facts.packages),
        prerequisites=plugin,
        patterns=tuple(re.escape(name) for name in choice.packages),
        repository=repository,
        makes=((RUNTIME_CONFIG_PATH, config.sha256 if config else ""),),
        lock_timeout=lock_timeout,
    )
    return ToolkitPlan(
        choice=choice,
        action=action,
        before=before,
        target=target,
        transaction=transaction,
        hold=to_hold(choice.packages, facts, moves=moves) if settings.hold else (),
        runtimes=runtimes,
        cdi=cdi,
        reasons=(choice.reason, reason),
        findings=(
            *(as_warnings(choice.findings) if action == "none" else choice.findings),
            *repository.findings,
            *_kept(settings, before, asked.version, target),
            *_inspect(settings, facts, catalog),
            *(finding for runtime in runtimes for finding in runtime.findings),
            *cdi.findings,
        ),
    )


def _keeps(settings: ToolkitSettings, asked: ToolkitChoice, before: str, there: list[str]) -> bool:
    """True if the installed version stays: a run that may not change it completes only what an
    interrupted one began, and no run moves it down unless a version is set."""
    if settings.allow_change:
        return not settings.version and version_tuple(before) > version_tuple(asked.version)
    return not asked.blocked and asked.version not in there


def _kept(settings: ToolkitSettings, before: str | None, asked: str, target: str) -> list[Finding]:
    """The finding that the installed version stays, unless it is newer and no version is set."""
    lower = version_tuple(asked) < version_tuple(target)
    if target == asked or before is None or (lower and not settings.version):
        return []
    options = " --toolkit --allow-downgrade" if lower else " --toolkit"
    who = "the settings select" if settings.version else "the catalog selects"
    level = Severity.WARNING if settings.version else Severity.INFO
    return [kinds.TOOLKIT_KEPT(level, installed=before, who=who, version=asked, options=options)]


def _action(choice: ToolkitChoice, before: str | None, facts: NodeFacts) -> tuple[Action, str]:
    target = choice.version
    if before is None:
        return "install", "No container toolkit is installed."
    wrong = [
        name
        for name in choice.packages
        if name not in facts.packages
        or facts.packages[name].upstream != target
        or facts.packages[name].state != "installed"
    ]
    if not wrong:
        return "none", f"Container toolkit {before} is installed."
    if before == target:
        return "repair", f"Not at {target}, or half-installed: {', '.join(wrong)}."
    verb: Action = "upgrade" if version_tuple(before) < version_tuple(target) else "downgrade"
    return verb, f"Container toolkit {before} is installed, {target} is requested."


def _inspect(settings: ToolkitSettings, facts: NodeFacts, catalog: ToolkitCatalog) -> list[Finding]:
    """Findings about the host: old packages, a file that the toolkit cannot read, runtimes that are
    not configured."""
    findings = []
    legacy = [name for name in catalog.toolkit.packages_removed.names if name in facts.packages]
    if legacy:
        findings.append(kinds.LEGACY_PACKAGES(packages=", ".join(legacy)))
    try:
        TOML.parse(facts.texts.get(RUNTIME_CONFIG_PATH) or "")
    except NotUnderstood as error:
        findings.append(TOOLKIT_FILE_INVALID(file=RUNTIME_CONFIG_PATH, reason=error))
    names = {runtime.name for runtime in facts.runtimes.values()}
    engines = other_engines(facts)
    findings += engines
    if not names and not engines:
        findings.append(found.NO_RUNTIME())
    if settings.runtimes != "auto":
        differ = found.RUNTIMES_DIFFER
        findings += [
            differ(lists="lists", runtime=name, there="not installed")
            for name in settings.runtimes
            if name not in names
        ]
        findings += [
            differ(Severity.INFO, lists="leaves out", runtime=name, there="installed")
            for name in sorted(names - set(settings.runtimes))
        ]
    return findings
