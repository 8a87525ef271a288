"""Removal plan of the toolkit: runtimes' settings and CDI specs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.role.protocol import Removal, RemovalContext
from gpufleet.toolkit.findings import runtimes as found
from gpufleet.toolkit.record import ToolkitEntry
from gpufleet.toolkit.runtime_model import RuntimePlan
from gpufleet.toolkit.runtime_removal import plan_runtime_removal
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


def plan_toolkit_removal(
    settings: ToolkitSettings, context: RemovalContext[ToolkitEntry]
) -> ToolkitRemoval:
    """Plan by the record and notes; containers that need the runtime are a blocker."""
    facts, cdi = context.facts, context.catalog.toolkit.cdi
    runtimes = plan_runtime_removal(settings, facts, context.catalog)
    return ToolkitRemoval(
        runtimes=runtimes,
        specs=_specs(context.entry, cdi.refresh_output),
        units=tuple(unit for unit in cdi.refresh_units if unit in facts.services),
        findings=(
            *_containers(settings, runtimes, context),
            *(finding for runtime in runtimes for finding in runtime.findings),
        ),
    )


def _containers(
    settings: ToolkitSettings,
    runtimes: tuple[RuntimePlan, ...],
    context: RemovalContext[ToolkitEntry],
) -> tuple[Finding, ...]:
    """A container's runtime program is needed to stop or enter the container."""
    if settings.allow_disruption:
        return ()
    there = context.facts.runtimes
    counts = {plan.key: there[plan.key].containers for plan in runtimes if plan.key in there}
    return tuple(
        found.RUNTIME_IN_USE(runtime=key, containers=count)
        for key, count in counts.items()
        if count
    )


def _specs(entry: ToolkitEntry, refreshed: str) -> tuple[str, ...]:
    """The specs that gpufleet and the units of the toolkit's packages generated."""
    specs = ((entry.cdi.path, entry.cdi.created), (refreshed, entry.added))
    return tuple(dict.fromkeys(path for path, ours in specs if ours))
