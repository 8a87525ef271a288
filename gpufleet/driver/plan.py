"""Plans the driver of one host. Pure: settings + facts + catalog."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from gpufleet.core.findings import Finding, as_warnings
from gpufleet.driver import files
from gpufleet.driver.action import (
    Action,
    decide_driver_action,
    disruption_findings,
    installed_version,
    is_loaded,
    lower_driver,
    of_another_source,
    without_build,
    without_newer_kernels,
)
from gpufleet.driver.choice import DriverChoice
from gpufleet.driver.findings import host as findings
from gpufleet.driver.record import DriverEntry
from gpufleet.driver.resolve import resolve_driver
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.files import DRIVER_BEGUN_PATH
from gpufleet.facts.kernels import kernel_flavour
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.host.notices import reload_waits
from gpufleet.packages import findings as package_findings
from gpufleet.packages.components import component_sources
from gpufleet.packages.holds import is_held, lock_plugin, to_hold
from gpufleet.packages.logins import NO_LOGINS, with_login
from gpufleet.packages.repository import RepositoryPlan, plan_repository
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.protocol import RoleContext


@dataclass(frozen=True, slots=True)
class DriverPlan:
    """The steps of the driver role for one host. An empty step does nothing."""

    choice: DriverChoice
    action: Action
    before: str | None  # version of the installed packages
    loaded: str | None  # version of the module in the kernel
    transaction: PackageTransaction
    modules: tuple[str, ...]  # to load by modprobe, in this order
    components: FileWrite | None  # source list that enables more of the distribution's own archive
    wanted_files: tuple[FileWrite, ...]  # without the pins, which need the version
    files: tuple[FileWrite, ...]  # those that differ on the host
    hold: tuple[str, ...]  # packages to hold
    plugin: tuple[str, ...]  # missing version lock, if no transaction installs it
    wanted_services: tuple[str, ...]
    services: tuple[str, ...]  # services to enable and start
    initramfs: bool  # it may lack the blacklist; a successful run records that it has it
    load: bool  # the target's module is not loaded
    stale_module: bool  # the loaded module has another version or flavour
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def target(self) -> str | None:
        """The version after the run. None means the newest of the branch in the repository."""
        return self.transaction.version

    @property
    def packages(self) -> tuple[str, ...]:
        """Package names, all at the target version."""
        return self.transaction.packages

    @property
    def repository(self) -> RepositoryPlan:
        return self.transaction.repository

    @property
    def changes_packages(self) -> bool:
        return self.transaction.needed

    @property
    def loads(self) -> bool:
        """True if a step of the run loads the driver."""
        return self.load or self.changes_packages

    @property
    def converged(self) -> bool:
        """True if there is nothing to do."""
        return not (
            self.changes_packages
            or self.repository.needed
            or self.components
            or self.files
            or self.hold
            or self.services
            or self.initramfs
            or self.load
        )


def plan_driver(settings: DriverSettings, context: RoleContext) -> DriverPlan:
    """Plan the driver of one host with GPUs. Reports findings and never raises."""
    facts, spared = context.facts, context.spared
    choice = resolve_driver(
        context.catalog,
        distribution=facts.distribution or facts.os.code,
        architecture=facts.kernel.architecture,
        kernel=facts.kernel.release,
        devices=[gpu.device for gpu in facts.gpus],
        nvswitch=bool(facts.nvswitches),
        settings=settings,
        installed=branch_and_modules(facts),
        flavour=kernel_flavour(facts),
    )
    names = choice.packages
    packages = names.install + (names.fabric_manager if facts.nvswitches else ())
    family = re.compile("|".join(f"(?:{pattern})" for pattern in names.family) or "(?!)")
    installed = tuple(sorted(name for name in facts.packages if family.fullmatch(name)))
    before = installed_version(packages, installed, facts)
    whole, packages = packages, without_build(choice, packages, before, facts)
    if packages != whole:
        choice = replace(choice, build="precompiled")  # for the record, and for Secure Boot
    foreign = of_another_source(choice, packages, our_packages(facts), facts)
    target, action, reason = decide_driver_action(choice, packages, before, foreign, facts)
    moves = action != "none"
    plugin = lock_plugin(facts, hold=settings.hold)
    repository = plan_repository(choice.repository, facts, wanted=moves)
    repository = with_login(repository, context.logins.get("driver", NO_LOGINS), facts)
    transaction = PackageTransaction(
        role="driver",
        title=files.TITLE,
        packages=packages,
        facts=facts,
        version=target,
        branch=choice.branch,
        revision=names.revision,
        lowest=before or "" if target is None else "",
        needed=moves,
        installed=without_newer_kernels(installed, names.companions, facts.kernel.release),
        prerequisites=_prerequisites(choice, facts) + plugin,
        companions=names.companions,
        conflicting=names.rivals,
        patterns=names.family,
        repository=repository,
        pin_file=files.PREFERENCES_FILE if settings.hold and facts.package_manager == "apt" else "",
        lock_timeout=context.lock_timeout,
    )
    modules = files.modules_of(names.module)
    wanted = files.wanted_files(facts, modules, hold=settings.hold)
    checked = wanted if moves else wanted + transaction.pins(before)
    services = files.wanted_services(facts, persistence=settings.persistence)
    waits = not moves and files.persistence_waits(services, facts, spared)
    archive = facts.distribution.archive if facts.distribution else None
    third_parties = archive.third_parties if archive else ()
    blacklisted = all(file.is_on(facts) for file in wanted if file.path == files.MODPROBE_FILE)
    loaded = is_loaded(choice, target, facts)
    right = loaded and target and facts.library == target and "nvidia_uvm" in facts.modules
    return DriverPlan(
        choice=choice,
        action=action,
        before=before,
        loaded=facts.loaded_driver,
        transaction=transaction,
        modules=modules,
        components=component_sources(choice.components, facts, third_parties),
        wanted_files=wanted,
        files=tuple(file for file in checked if not file.is_on(facts)),
        hold=to_hold(packages, facts, moves=moves or bool(plugin)) if settings.hold else (),
        plugin=() if moves else plugin,
        wanted_services=services,
        services=files.services_to_start(services, facts, waits),
        initramfs=not (blacklisted and files.MODPROBE_FILE in facts.provenance.files),
        load=not right,
        stale_module=facts.loaded_driver is not None and not loaded,
        reasons=(choice.reason, reason),
        findings=(
            *(choice.findings if moves else as_warnings(choice.findings)),
            *repository.findings,
            *_package_findings(choice, packages, installed, foreign, action, facts),
            *lower_driver(settings, facts, before, target, choice),
            *disruption_findings(settings, facts, spared, target, choice, action),
            *((reload_waits(files.PERSISTENCED),) if waits else ()),
        ),
    )


def _prerequisites(choice: DriverChoice, facts: NodeFacts) -> tuple[str, ...]:
    if choice.build != "dkms":
        return ()
    headers = () if facts.kernel.headers else choice.packages.headers
    build = tuple(name for name in choice.packages.build if name not in facts.packages)
    return headers + build


def branch_and_modules(facts: NodeFacts) -> tuple[str, str] | None:
    """Branch and flavour of the module on disk or loaded, or of the record: ("580", "open").

    A new kernel has no module yet.
    """
    version = facts.module_on_disk.version if facts.module_on_disk else facts.loaded_driver
    flavour = facts.installed_flavour
    if version and flavour:
        return version.split(".")[0], flavour
    record = facts.provenance.entry(DriverEntry)
    there = any(name in facts.packages for name in record.packages)
    return (record.branch, record.modules) if there and record.modules else None


def _package_findings(
    choice: DriverChoice,
    packages: tuple[str, ...],
    installed: tuple[str, ...],
    foreign: tuple[str, ...],
    action: Action,
    facts: NodeFacts,
) -> list[Finding]:
    found: list[Finding] = []
    ours = our_packages(facts)
    others = [name for name in installed if name not in packages and name not in ours]
    others += foreign
    held = [name for name in installed if is_held(name, facts) and name not in ours]
    changes = action in ("replace", "upgrade", "downgrade")
    if others and changes:
        found.append(findings.OTHER_PACKAGES(packages=", ".join(others)))
    if held and changes:
        found.append(package_findings.HELD_PACKAGES(packages=", ".join(held)))
    headers = ", ".join(choice.packages.headers)
    if headers and choice.build == "dkms" and not facts.kernel.headers:
        found.append(findings.NO_HEADERS(kernel=facts.kernel.release, packages=headers))
    return found


def our_packages(facts: NodeFacts) -> set[str]:
    """Packages that gpufleet installed, including those of a killed run without a record."""
    record = facts.provenance.entry(DriverEntry)
    return {*record.packages, *record.added, *facts.texts.get(DRIVER_BEGUN_PATH, "").split()}
