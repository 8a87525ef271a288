"""containerd as a role of a node. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.containerd.models import ContainerdCatalog, ContainerdEntry
from gpufleet.containerd.plan import PACKAGED, ContainerdPlan, plan_containerd
from gpufleet.containerd.settings import ContainerdSettings
from gpufleet.core.findings import Finding
from gpufleet.packages.transaction import PackageTransaction, repository_answer
from gpufleet.role.protocol import (
    Removal,
    RemovalContext,
    Role,
    RoleContext,
    prefix_role,
    repository_name,
)
from gpufleet.role.result import RoleResult, file_digests


@dataclass(frozen=True, slots=True)
class ContainerdRemoval(Removal):
    """Steps before the package is removed. The package manager removes it only if no other package
    needs it."""

    goes: bool  # the host has gpufleet's package
    config: str
    restores: bool  # gpufleet replaced the package's own file
    findings: tuple[Finding, ...] = ()

    def first(self) -> Mapping[str, object]:
        return {"check that containerd runs no containers": self.goes}

    def before(self) -> Mapping[str, object]:
        return {f"restore the package's {self.config}": self.restores}


class ContainerdRole(Role[ContainerdSettings, ContainerdPlan, ContainerdEntry]):
    """Installs containerd if another role needs it and the host lacks it."""

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
            f"install {plan.package}{repository_answer(plan.transaction)}": plan.needed,
            f"start {plan.unit} with the CRI plugin": plan.settles,
        }
        return prefix_role(self.name, done)

    def describe(self, plan: ContainerdPlan) -> dict[str, Any]:
        return {
            "package": plan.package,
            "before": plan.before,
            "installs": plan.needed,
            "minimum": plan.minimum,
            "reason": plan.reason,
        }

    def versions(
        self, plan: ContainerdPlan, entry: ContainerdEntry
    ) -> tuple[str | None, str | None]:
        # only the repository knows which version it installs
        return plan.before, plan.transaction.version if plan.needed else plan.before

    def writes(self, path: str, catalog: ContainerdCatalog) -> bool:
        layouts = catalog.containerd.docker.layouts
        return path in {name for each in layouts for name in (each.file, each.keyring)}

    def removal(
        self, settings: ContainerdSettings, context: RemovalContext[ContainerdEntry]
    ) -> ContainerdRemoval:
        """Removes only a package that gpufleet installed."""
        known = context.catalog.containerd
        goes = [name for name in known.packages if name in context.entry.added]
        return ContainerdRemoval(
            goes=any(name in context.facts.packages for name in goes),
            config=known.config,
            restores=PACKAGED in context.facts.cluster_host.paths,
        )

    def main_packages(self, catalog: ContainerdCatalog) -> tuple[str, ...]:
        return catalog.containerd.packages


def conclude_containerd(plan: ContainerdPlan, found: PackageTransaction | None) -> RoleResult:
    """The host's result. `found`: the transaction, if one ran."""
    asked, source = plan.transaction, plan.repository.source
    version = found.version if found else plan.before
    packages = asked.versions(found, asked.facts.provenance.entry(ContainerdEntry))
    entry = ContainerdEntry(version=version, packages=packages)
    return RoleResult(entry, file_digests([source] if source else []), version)


ROLE = ContainerdRole()
