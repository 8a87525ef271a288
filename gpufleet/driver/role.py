"""The driver as a role of a node. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.names import counted
from gpufleet.driver.checks import contradiction
from gpufleet.driver.files import PERSISTENCE_OVERRIDE
from gpufleet.driver.plan import DriverPlan, plan_driver
from gpufleet.driver.preflight import inspect_driver
from gpufleet.driver.record import DriverEntry
from gpufleet.driver.removal import DriverRemoval, plan_driver_removal
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.logins import Logins, with_login
from gpufleet.packages.repository import RepositoryPlan
from gpufleet.role.protocol import (
    ASKED_LATER,
    RemovalContext,
    Role,
    RoleContext,
    named,
    repository_name,
)


class DriverRole(Role[DriverSettings, DriverPlan, DriverEntry]):
    """NVIDIA's driver."""

    name = "driver"
    settings = DriverSettings
    entry = DriverEntry

    def contradictions(self, settings: DriverSettings) -> list[Finding]:
        return list(contradiction(settings))

    def logins(self, settings: DriverSettings) -> tuple[str, str | None] | None:
        return "driver_repo_logins", settings.repo_logins

    def plan(
        self, settings: DriverSettings, context: RoleContext
    ) -> tuple[DriverPlan | None, tuple[Finding, ...]]:
        if not settings.enabled:
            return None, ()
        facts = context.facts
        plan = plan_driver(settings, facts, context.catalog, context.spared)
        login = context.logins.get(self.name, Logins())
        plan = replace(plan, repository=with_login(plan.repository, login, facts))
        return plan, (*plan.findings, *inspect_driver(settings, facts, plan))

    def context_after(
        self, settings: DriverSettings, plan: DriverPlan | None, context: RoleContext
    ) -> RoleContext:
        if plan:
            return replace(
                context,
                driver=plan.target,
                branch=plan.choice.branch,
                installs=plan.target or plan.choice.branch,
                repository=plan.repository if plan.choice.source == "nvidia" else None,
            )
        facts = context.facts
        known = plan_driver(settings, facts, context.catalog).repository
        return replace(
            context,
            driver=facts.loaded_driver,
            branch=(facts.loaded_driver or "").split(".")[0],
            repository=None if known.needed or known.repository is None else known,
        )

    def converged(self, plan: DriverPlan, driver: str | None) -> bool:
        return plan.converged

    def steps(self, plan: DriverPlan, context: RoleContext) -> list[str]:
        target = f"{plan.target}{ASKED_LATER}" if plan.target else _newest(plan)
        modules = f"{plan.choice.modules} modules"
        moves = plan.load or plan.changes_packages
        files = self.files(plan)
        packages = counted(len(plan.packages), "package")
        done = {
            f"enable {' '.join(plan.choice.components)} of the distribution": plan.components,
            f"trust the repository {repository_name(plan.repository)}": plan.repository.needed,
            f"install {', '.join(plan.prerequisites)}": (
                plan.changes_packages and plan.prerequisites
            ),
            f"{plan.action} the driver: {target}, {modules}, {packages}": (plan.changes_packages),
            f"write {', '.join(file.path for file in files)}": files,
            "hold the driver packages": plan.hold,
            "rebuild the initramfs": plan.initramfs,
            "unload the old modules": plan.stale_module and moves,
            "load the modules": moves,
            f"start {', '.join(plan.services)}": plan.services,
        }
        return named(self.name, done)

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

    def versions(self, plan: DriverPlan, entry: DriverEntry) -> tuple[str | None, str | None]:
        return plan.before, plan.target or plan.choice.newest_known

    def files(self, plan: DriverPlan) -> tuple[FileWrite, ...]:
        return (*plan.files, *([plan.components] if plan.components else []))

    def repository(self, plan: DriverPlan) -> RepositoryPlan | None:
        return plan.repository

    def own_files(self, facts: NodeFacts) -> dict[str, str]:
        override = facts.files.get(PERSISTENCE_OVERRIDE)
        return {PERSISTENCE_OVERRIDE: override.sha256} if override and override.sha256 else {}

    def removal(
        self, settings: DriverSettings, context: RemovalContext[DriverEntry]
    ) -> DriverRemoval:
        return plan_driver_removal(context, settings.allow_disruption)

    def installs(self, plan: DriverPlan) -> bool:
        return plan.changes_packages

    def missing_prerequisites(self, plan: DriverPlan) -> tuple[str, ...] | None:
        return plan.prerequisites if plan.changes_packages else None


def _newest(plan: DriverPlan) -> str:
    """The version of a branch, as far as the catalog knows it before the run."""
    known = plan.choice.newest_known
    note = f"; the newest known to the catalog is {known}" if known else ""
    return f"the newest of branch {plan.choice.branch}{ASKED_LATER}{note}"


ROLE = DriverRole()
