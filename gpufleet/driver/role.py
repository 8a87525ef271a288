"""The driver as a role of a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.combinations.models import NO_COMPONENTS, Components
from gpufleet.core.findings import Finding
from gpufleet.core.names import count_noun
from gpufleet.driver.checks import check_contradiction
from gpufleet.driver.files import (
    MODPROBE_FILE,
    PERSISTENCE_OVERRIDE,
    running_services,
    writes_override,
)
from gpufleet.driver.findings import health
from gpufleet.driver.findings import host as findings
from gpufleet.driver.health import assess_gpu_health, described_driver
from gpufleet.driver.keep import keep_driver
from gpufleet.driver.plan import DriverPlan, plan_driver
from gpufleet.driver.preflight import inspect_driver
from gpufleet.driver.record import DriverEntry
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.gpu_work import gpu_work
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.host.findings import MODULE_NOT_BUILT
from gpufleet.packages.findings import PACKAGES_UNFINISHED
from gpufleet.packages.holds import still_held
from gpufleet.packages.transaction import PackageTransaction, repository_answer
from gpufleet.role.faults import Faults
from gpufleet.role.impact import Impact
from gpufleet.role.protocol import (
    Removal,
    RemovalContext,
    Role,
    RoleContext,
    prefix_role,
    repository_name,
)
from gpufleet.role.result import RoleResult, file_digests

# findings that the steps resolve, and findings that loading the driver resolves
SOLVED = (findings.NO_HEADERS, findings.NOUVEAU_LOADED, PACKAGES_UNFINISHED)
LOADED = (MODULE_NOT_BUILT, health.VERSION_MISMATCH, health.NOT_LOADED, health.GPU_UNBOUND,
          health.SMI_FAILED)  # fmt: skip
SOLVED_YET = (findings.NO_HEADERS, PACKAGES_UNFINISHED, MODULE_NOT_BUILT, health.NOT_LOADED)
NO_GPUS_YET = "programs cannot use the GPUs until then"
PREREQUISITES = ("i2c_core", "ipmi_msghandler")  # kernel modules that load.sh loads
LOADED_NAMES = ("nvidia", "nvidia_uvm")  # if an old record does not list them


@dataclass(frozen=True, slots=True)
class DriverRemoval(Removal):
    """The removal of the driver, in addition to its packages and files."""

    modules: tuple[str, ...]  # loaded again if one cannot be unloaded
    unload: bool
    prerequisites: tuple[str, ...]  # kernel modules that were loaded for the driver
    initramfs: str  # file to remove from it
    findings: tuple[Finding, ...]

    def first(self) -> Mapping[str, object]:
        return {"unload the NVIDIA modules": self.unload}

    def after(self) -> Mapping[str, object]:
        return {f"rebuild the initramfs without {self.initramfs}": self.initramfs}

    def describe(self) -> dict[str, Any]:
        return {"unload": self.unload}


class DriverRole(Role[DriverSettings, DriverPlan, DriverEntry]):
    """NVIDIA's driver."""

    name = "driver"
    need_driver = ("unload the old modules", "load the modules", "start ")
    settings = DriverSettings
    entry = DriverEntry

    def contradictions(self, settings: DriverSettings) -> list[Finding]:
        return list(check_contradiction(settings))

    def logins(self, settings: DriverSettings) -> tuple[str, str | None] | None:
        return "driver_repo_logins", settings.repo_logins

    def plan(
        self, settings: DriverSettings, context: RoleContext
    ) -> tuple[DriverPlan | None, tuple[Finding, ...]]:
        if not settings.enabled:
            return None, ()
        plan, kept = keep_driver(settings, context, plan_driver(settings, context))
        if plan is None:
            return None, kept
        return plan, (*kept, *plan.findings, *inspect_driver(settings, context.facts, plan))

    def faults(self, plan: DriverPlan | None, context: RoleContext) -> Faults:
        repairs = plan is not None and plan.loads
        return assess_gpu_health(context.facts, context.gpus, repairs=repairs)

    def context_after(
        self, settings: DriverSettings, plan: DriverPlan | None, context: RoleContext
    ) -> RoleContext:
        if plan:
            return replace(
                context,
                driver=plan.target,
                installs=plan.target or plan.choice.branch,
                loads_driver=plan.loads,
                repository=plan.repository if plan.choice.source == "nvidia" else None,
            )
        loaded = context.facts.loaded_driver
        known = plan_driver(settings, replace(context, logins={})).repository
        return replace(
            context,
            driver=loaded,
            repository=None if known.needed or known.repository is None else known,
        )

    def converged(self, plan: DriverPlan, driver: str | None) -> bool:
        return plan.converged

    def steps(self, plan: DriverPlan, context: RoleContext) -> list[str]:
        known = plan.choice.newest_known
        target = plan.target or (
            f"{known} or a newer {plan.choice.branch} of the repository"
            if known
            else f"the newest of branch {plan.choice.branch}"
        )
        modules = f"{plan.choice.modules} modules"
        files, prerequisites = self.files(plan), plan.transaction.prerequisites
        said = repository_answer(plan.transaction)
        done = {
            f"enable {' '.join(plan.choice.components)} of the distribution": plan.components,
            f"trust the repository {repository_name(plan.repository)}": plan.repository.needed,
            f"install {', '.join(prerequisites)}": plan.changes_packages and prerequisites,
            f"{plan.action} the driver: {target}, {modules}{said}": plan.changes_packages,
            f"write {', '.join(file.path for file in files)}": files,
            "hold the driver packages": plan.hold,
            "rebuild the initramfs": plan.initramfs,
            "unload the old modules": plan.stale_module and plan.loads,
            "load the modules": plan.loads,
            f"start {', '.join(plan.services)}": plan.services,
        }
        return prefix_role(self.name, done)

    def outcome(
        self, settings: DriverSettings, plan: DriverPlan, context: RoleContext
    ) -> RoleResult:
        return conclude_driver(settings, context.facts, plan)

    def describe(self, plan: DriverPlan) -> dict[str, Any]:
        return {
            "action": plan.action,
            "before": plan.before,
            "loaded": plan.loaded,
            "target": plan.target or plan.choice.newest_known,
            "branch": plan.choice.branch,
            "modules": plan.choice.modules,
            "packages": list(plan.packages),
            "files": [file.path for file in self.files(plan)],
            "services": list(plan.services),
            "reasons": list(plan.reasons),
        }

    def described(self, facts: NodeFacts, catalog: Any) -> Iterable[tuple[str, Any]]:
        return described_driver(facts, catalog).items()

    def versions(self, plan: DriverPlan, entry: DriverEntry) -> tuple[str | None, str | None]:
        return plan.before, plan.target or plan.choice.newest_known

    def installed(self, facts: NodeFacts, catalog: Any) -> str | None:
        module = facts.module_on_disk
        return facts.loaded_driver or (module and module.version) or facts.library

    def files(self, plan: DriverPlan) -> tuple[FileWrite, ...]:
        return (*plan.files, *([plan.components] if plan.components else []))

    def impact(self, plan: DriverPlan, context: RoleContext) -> Impact:
        moved = plan.changes_packages
        started = plan.wanted_services if plan.loads else plan.services
        override = (PERSISTENCE_OVERRIDE,) if writes_override(started, context.facts) else ()
        unloads = plan.loads and plan.stale_module
        stopped = running_services(plan.wanted_services, context.facts) if unloads else ()
        return Impact(
            restarts=dict.fromkeys(stopped),
            files=((plan.transaction.pin_file,) if moved and plan.transaction.pin_file else ())
            + override,
            unloads=unloads,
            reboot="possible" if plan.loads else "none",
        )

    def own_files(self, facts: NodeFacts) -> dict[str, str]:
        override = facts.files.get(PERSISTENCE_OVERRIDE)
        return {PERSISTENCE_OVERRIDE: override.sha256} if override and override.sha256 else {}

    def removal(
        self, settings: DriverSettings, context: RemovalContext[DriverEntry]
    ) -> DriverRemoval:
        """Plan from the record. Running GPU work is a blocker unless the settings allow its end."""
        entry, facts = context.entry, context.facts
        unload = bool(entry.added) and facts.loaded_driver is not None  # else not ours
        work, pods = gpu_work(facts, context.spared), facts.gpu_pods
        busy: tuple[Finding, ...] = ()
        if unload and (work or pods) and not settings.allow_disruption:
            names = ", ".join(str(process) for process in work[:5]) or count_noun(pods, "pod")
            busy = (findings.GPU_BUSY_REMOVAL(work=names),)
        return DriverRemoval(
            modules=tuple(entry.load or LOADED_NAMES),
            unload=unload,
            prerequisites=tuple(entry.prerequisites or ()),
            initramfs=MODPROBE_FILE if MODPROBE_FILE in context.written else "",
            findings=busy,
        )

    def components(self, plan: DriverPlan) -> Components:
        """Distributions patch their sources for their kernels: only NVIDIA's own are judged."""
        if not plan.changes_packages:
            return NO_COMPONENTS
        choice, version = plan.choice, plan.target or ""
        builds = choice.build == "dkms" and choice.source == "nvidia"
        proprietary = choice.modules == "proprietary"
        return Components(
            {"driver": version, "driver-build": version if builds else ""},
            frozenset({"builds-proprietary"} if proprietary else ()),
        )


def conclude_driver(
    settings: DriverSettings,
    facts: NodeFacts,
    plan: DriverPlan,
    found: PackageTransaction | None = None,
    reboot: str = "",
) -> RoleResult:
    """The host's result. `found`: the transaction that ran; `reboot`: why the driver can only be
    loaded by a reboot, which is not allowed."""
    version = found.version if found else plan.target
    old = facts.provenance.entry(DriverEntry)
    repository = plan.repository.repository
    prerequisites = [name for name in PREREQUISITES if name not in facts.modules]
    entry = DriverEntry(
        version=version,
        branch=plan.choice.branch,
        modules=plan.choice.modules,
        source=plan.choice.source,
        build=plan.choice.build,
        packages=plan.transaction.versions(found, old),
        load=list(plan.modules),
        prerequisites=prerequisites if old.prerequisites is None else old.prerequisites,
        repository=repository.url if repository else None,
        keyring=repository.keyring if repository else None,
        source_file=repository.file if repository else None,
        held=settings.hold or still_held(old, facts, moved=found is not None),
        fabric_manager=bool(facts.nvswitches),
        gpus=old.gpus if plan.converged and old.exists else max(old.gpus, len(facts.gpus)),
    )
    wrote = (plan.components, plan.repository.source, plan.repository.login)
    files = (*plan.wanted_files, *plan.transaction.pins(version), *filter(None, wrote))
    recorded = facts.provenance.files
    solved = (*SOLVED, *(LOADED if plan.loads else ()))
    ours = (
        file
        for file in files
        # a file with our name is ours, even if a killed run did not record it
        if file.path in recorded or "gpufleet" in file.path or not file.is_on(facts)
    )
    return RoleResult(
        entry,
        file_digests(ours),
        version,
        needs=(f"reboot: {reboot}",) if reboot else (),
        findings=(findings.REBOOT_NEEDED(why=f"{reboot}; {NO_GPUS_YET}"),) if reboot else (),
        solved=tuple(kind.code for kind in (SOLVED_YET if reboot else solved)),
    )


ROLE = DriverRole()
