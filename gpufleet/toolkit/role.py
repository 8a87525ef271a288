"""The container toolkit as a role of a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.node_roles import RuntimeState
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.logins import Logins, with_login
from gpufleet.packages.transaction import repository_answer
from gpufleet.role.impact import Impact
from gpufleet.role.protocol import (
    Removal,
    RemovalContext,
    Role,
    RoleContext,
    prefix_role,
    repository_name,
)
from gpufleet.role.result import RoleResult
from gpufleet.toolkit.conclude import conclude_toolkit
from gpufleet.toolkit.findings.config import LEFT_CHANGED
from gpufleet.toolkit.findings.runtimes import RUNTIME_IN_USE
from gpufleet.toolkit.plan import ToolkitPlan, plan_toolkit
from gpufleet.toolkit.record import ToolkitEntry
from gpufleet.toolkit.runtime_model import RuntimePlan
from gpufleet.toolkit.runtime_removal import plan_runtime_removal
from gpufleet.toolkit.runtime_result import RUNTIME_CONFIG_PATH
from gpufleet.toolkit.settings import ToolkitSettings


@dataclass(frozen=True, slots=True)
class ToolkitRemoval(Removal):
    """Removal besides the toolkit's packages and files."""

    runtimes: tuple[RuntimePlan, ...]
    specs: tuple[str, ...]  # CDI specs that gpufleet created
    units: tuple[str, ...]  # they would recreate it; removed with their package
    findings: tuple[Finding, ...]

    def before(self) -> Mapping[str, object]:
        taken = [runtime.key for runtime in self.runtimes if runtime.change]
        return {
            f"remove nvidia from {', '.join(taken)}": taken,
            f"remove the CDI spec {', '.join(self.specs)}": self.specs,
        }

    def describe(self) -> dict[str, Any]:
        return {
            "runtimes": {runtime.key: runtime.describe() for runtime in self.runtimes},
            "cdi": list(self.specs),
        }


def installed_toolkit(facts: NodeFacts, names: Iterable[str]) -> str:
    """The version of the first of these packages that is installed; "" for none."""
    return next((facts.packages[name].upstream for name in names if name in facts.packages), "")


class ToolkitRole(Role[ToolkitSettings, ToolkitPlan, ToolkitEntry]):
    """NVIDIA's container toolkit, and the runtimes that it configures."""

    name = "toolkit"
    need_driver = ("generate the CDI spec",)
    folder = "container-toolkit"
    settings = ToolkitSettings
    entry = ToolkitEntry
    left_by_users = (LEFT_CHANGED.code,)

    def logins(self, settings: ToolkitSettings) -> tuple[str, str | None] | None:
        return "toolkit_repo_logins", settings.repo_logins

    def paths(self, settings: ToolkitSettings) -> tuple[str, ...]:
        return (settings.containerd_config,) if settings.containerd_config else ()

    def plan(
        self, settings: ToolkitSettings, context: RoleContext
    ) -> tuple[ToolkitPlan | None, tuple[Finding, ...]]:
        if not settings.enabled:
            return None, ()
        systemd_cgroups = context.required.get("cgroup-driver") == "systemd"
        plan = plan_toolkit(
            settings, context.facts, context.catalog, systemd_cgroups, context.lock_timeout
        )
        login = context.logins.get(self.name, Logins())
        repository = with_login(plan.repository, login, context.facts)
        plan = replace(plan, transaction=replace(plan.transaction, repository=repository))
        return plan, plan.findings

    def context_after(
        self, settings: ToolkitSettings, plan: ToolkitPlan | None, context: RoleContext
    ) -> RoleContext:
        if plan is None:
            return context
        served = frozenset(r.key for r in plan.runtimes if r.managed)
        changes = (change for runtime in plan.runtimes for change in runtime.changes)
        texts = {change.path: change.after for change in changes if change.after is not None}
        return replace(context, served=served, texts={**context.texts, **texts})

    def edits(self, plan: ToolkitPlan) -> tuple[FileWrite, ...]:
        return tuple(change.shown for runtime in plan.runtimes for change in runtime.changes)

    def converged(self, plan: ToolkitPlan, driver: str | None) -> bool:
        return plan.converged(driver)

    def steps(self, plan: ToolkitPlan, context: RoleContext) -> list[str]:
        said = repository_answer(plan.transaction)
        done: dict[str, object] = {
            f"trust the repository {repository_name(plan.repository)}": plan.repository.needed,
            f"{plan.action} the toolkit: {plan.target}{said}": plan.transaction.needed,
            "hold the toolkit packages": plan.hold,
            "generate the CDI spec": plan.cdi.stale(context.installs),
        }
        for runtime in plan.runtimes:
            done[f"write {runtime.config}"] = runtime.change is not None
            done |= {f"clean {change.path}": True for change in runtime.others}
            done[f"{runtime.activation} {runtime.unit}"] = runtime.activation != "none"
        return prefix_role(self.name, done)

    def outcome(
        self, settings: ToolkitSettings, plan: ToolkitPlan, context: RoleContext
    ) -> RoleResult:
        return conclude_toolkit(settings, context.facts, plan, context.driver)

    def describe(self, plan: ToolkitPlan) -> dict[str, Any]:
        return {
            "action": plan.action,
            "before": plan.before,
            "target": plan.target,
            "packages": list(plan.transaction.packages),
            "runtimes": {runtime.key: runtime.describe() for runtime in plan.runtimes},
            "cdi": {"keeper": plan.cdi.keeper, "path": plan.cdi.path},
            "reasons": list(plan.reasons),
        }

    def described(self, facts: NodeFacts, catalog: Any) -> Iterable[tuple[str, Any]]:
        yield "toolkit", self.installed(facts, catalog)

    def installed(self, facts: NodeFacts, catalog: Any) -> str | None:
        return installed_toolkit(facts, catalog.toolkit.packages.names) or None

    def versions(self, plan: ToolkitPlan, entry: ToolkitEntry) -> tuple[str | None, str | None]:
        return plan.before, plan.choice.version

    def impact(self, plan: ToolkitPlan, context: RoleContext) -> Impact:
        known = context.facts.runtimes
        restarts = {
            runtime.unit: known[runtime.key].containers if runtime.key in known else 0
            for runtime in plan.runtimes
            if runtime.activation == "restart"
        }
        files = []
        if plan.transaction.needed and RUNTIME_CONFIG_PATH not in context.facts.files:
            files.append(RUNTIME_CONFIG_PATH)
        if plan.cdi.stale(context.installs):
            files.append(plan.cdi.path)
        return Impact(restarts, tuple(files))

    def removal(
        self, settings: ToolkitSettings, context: RemovalContext[ToolkitEntry]
    ) -> ToolkitRemoval:
        """Plan by the record and notes; containers that need the runtime are a blocker."""
        facts, entry, cdi = context.facts, context.entry, context.catalog.toolkit.cdi
        runtimes = plan_runtime_removal(settings, facts, context.catalog)
        findings = []
        for plan in runtimes:
            runtime = facts.runtimes.get(plan.key)
            # a container's runtime program is needed to stop or enter the container
            if runtime and runtime.containers and not settings.allow_disruption:
                findings.append(RUNTIME_IN_USE(runtime=plan.key, containers=runtime.containers))
        # gpufleet generated them, or the units of the toolkit's packages
        specs = ((entry.cdi.path, entry.cdi.created), (cdi.refresh_output, entry.added))
        return ToolkitRemoval(
            runtimes=runtimes,
            specs=tuple(dict.fromkeys(path for path, ours in specs if ours)),
            units=tuple(unit for unit in cdi.refresh_units if unit in facts.services),
            findings=(*findings, *(finding for plan in runtimes for finding in plan.findings)),
        )

    def runtimes_left(self, removal: ToolkitRemoval) -> dict[str, RuntimeState]:
        return {plan.key: "nvidia removed" for plan in removal.runtimes if plan.changes}

    def needs_left(self, removal: ToolkitRemoval) -> list[str]:
        left = [runtime for runtime in removal.runtimes if runtime.postponed]
        return [f"restart {runtime.unit}: {runtime.reason}" for runtime in left]

    def runtimes(self, plan: ToolkitPlan, facts: NodeFacts) -> dict[str, RuntimeState]:
        return dict.fromkeys(facts.runtimes, "")


ROLE = ToolkitRole()
