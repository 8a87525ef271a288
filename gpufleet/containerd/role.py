"""containerd as a role of a node. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpufleet.containerd.models import ContainerdCatalog
from gpufleet.containerd.plan import ContainerdPlan, plan_containerd
from gpufleet.containerd.record import ContainerdEntry
from gpufleet.containerd.removal import ContainerdRemoval, plan_containerd_removal
from gpufleet.containerd.settings import ContainerdSettings
from gpufleet.core.findings import Finding
from gpufleet.packages.repository import RepositoryPlan
from gpufleet.role.protocol import (
    ASKED_LATER,
    RemovalContext,
    Role,
    RoleContext,
    named,
    repository_name,
)


class ContainerdRole(Role[ContainerdSettings, ContainerdPlan, ContainerdEntry]):
    """containerd where another role needs it and the host has none."""

    name = "containerd"
    needs_gpu = False
    settings = ContainerdSettings
    entry = ContainerdEntry

    def plan(
        self, settings: ContainerdSettings, context: RoleContext
    ) -> tuple[ContainerdPlan | None, tuple[Finding, ...]]:
        return plan_containerd(settings, context)

    def context_after(
        self, settings: ContainerdSettings, plan: ContainerdPlan | None, context: RoleContext
    ) -> RoleContext:
        return replace(context, facts=plan.facts) if plan else context

    def converged(self, plan: ContainerdPlan, driver: str | None) -> bool:
        return not plan.settles

    def steps(self, plan: ContainerdPlan, context: RoleContext) -> list[str]:
        done: dict[str, object] = {
            f"trust the repository {repository_name(plan.repository)}": plan.repository.needed,
            f"install {plan.package}{ASKED_LATER}": plan.needed,
            f"start {plan.unit} with the CRI plugin": plan.settles,
        }
        return named(self.name, done)

    def describe(self, plan: ContainerdPlan) -> dict[str, Any]:
        return plan.describe()

    def versions(
        self, plan: ContainerdPlan, entry: ContainerdEntry
    ) -> tuple[str | None, str | None]:
        return plan.before, plan.before  # what is installed is known to the repository alone

    def repository(self, plan: ContainerdPlan) -> RepositoryPlan | None:
        return plan.repository

    def installs(self, plan: ContainerdPlan) -> bool:
        return plan.needed

    def writes(self, path: str, catalog: ContainerdCatalog) -> bool:
        layouts = catalog.containerd.docker.layouts
        return path in {name for each in layouts for name in (each.file, each.keyring)}

    def removal(
        self, settings: ContainerdSettings, context: RemovalContext[ContainerdEntry]
    ) -> ContainerdRemoval:
        return plan_containerd_removal(context)

    def main_packages(self, catalog: ContainerdCatalog) -> tuple[str, ...]:
        return catalog.containerd.packages


ROLE = ContainerdRole()
