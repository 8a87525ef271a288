"""Layout and settings of the GPUs as a role of a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.facts.gpu import LAYOUT_FILE
from gpufleet.facts.model import NodeFacts
from gpufleet.gpu import findings as found
from gpufleet.gpu.checks import check_keys, work_on
from gpufleet.gpu.files import GPUS_UNIT, PROGRAM, UNIT_PATH
from gpufleet.gpu.models import GpuEntry
from gpufleet.gpu.plan import GpuPlan, plan_gpus
from gpufleet.gpu.settings import GpuSettings
from gpufleet.host.file_write import FileWrite
from gpufleet.role.impact import Impact
from gpufleet.role.protocol import Removal, RemovalContext, Role, RoleContext, prefix_role
from gpufleet.role.result import RoleResult, file_digests


@dataclass(frozen=True, slots=True)
class GpuRemoval(Removal):
    """Returns the GPUs to whole GPUs with default limits, before the driver is unloaded."""

    managed: bool = False
    findings: tuple[Finding, ...] = ()

    def first(self) -> Mapping[str, object]:
        return {"return the GPUs to whole GPUs with default limits": self.managed}


class GpuRole(Role[GpuSettings, GpuPlan, GpuEntry]):
    """MIG layout, power limit, clocks, compute mode and ECC."""

    name = "gpu"
    need_driver = ("make the layout",)
    settings = GpuSettings
    entry = GpuEntry

    def contradictions(self, settings: GpuSettings) -> list[Finding]:
        return check_keys(settings)

    def paths(self, settings: GpuSettings) -> tuple[str, ...]:
        """Asking for LAYOUT_FILE also makes the facts read the GPUs' state."""
        return (LAYOUT_FILE, PROGRAM, UNIT_PATH) if settings.manages else ()

    def plan(
        self, settings: GpuSettings, context: RoleContext
    ) -> tuple[GpuPlan | None, tuple[Finding, ...]]:
        return plan_gpus(settings, context)

    def converged(self, plan: GpuPlan, driver: str | None) -> bool:
        return not plan.applies

    def steps(self, plan: GpuPlan, context: RoleContext) -> list[str]:
        done: dict[str, object] = {change.text: True for change in plan.changes}
        done |= {
            f"make the layout {plan.after}, if it is not there": not plan.known,
            f"make the layout {plan.after} again": plan.reloads and plan.known,
            f"write {', '.join(file.path for file in plan.files)}": plan.files,
            f"enable {GPUS_UNIT}": not plan.runs,
        }
        return prefix_role(self.name, done)

    def outcome(self, settings: GpuSettings, plan: GpuPlan, context: RoleContext) -> RoleResult:
        return conclude_gpus(plan)

    def describe(self, plan: GpuPlan) -> dict[str, Any]:
        return {
            "before": plan.before,
            "after": plan.after,
            "gpus": dict(plan.lines),
            "changes": [change.text for change in plan.changes],
            "files": [file.path for file in plan.files],
        }

    def versions(self, plan: GpuPlan, entry: GpuEntry) -> tuple[str | None, str | None]:
        return plan.before, plan.after

    def described(self, facts: NodeFacts, catalog: Any) -> Iterable[tuple[str, Any]]:
        boards = facts.listed.boards if facts.listed else ()
        yield "mig", [list(board.devices) for board in boards]

    def files(self, plan: GpuPlan) -> tuple[FileWrite, ...]:
        return plan.files

    def impact(self, plan: GpuPlan, context: RoleContext) -> Impact:
        return Impact(reboot="possible" if plan.resets else "none")

    def services(self, entry: GpuEntry) -> tuple[str, ...]:
        return (GPUS_UNIT,)

    def writes(self, path: str, catalog: Any) -> bool:
        return path in (LAYOUT_FILE, PROGRAM, UNIT_PATH)

    def began(
        self, facts: NodeFacts, written: tuple[str, ...], images: tuple[str, ...], catalog: Any
    ) -> bool:
        return LAYOUT_FILE in written

    def removal(self, settings: GpuSettings, context: RemovalContext[GpuEntry]) -> GpuRemoval:
        """Work on a GPU that is divided is a blocker: its instances are destroyed."""
        entry, facts = context.entry, context.facts
        if not entry.exists:
            return GpuRemoval()
        divided = facts.listed is not None and facts.listed.mig_devices > 0
        work = work_on(facts, context.spared, range(len(facts.gpus))) if divided else []
        change = "The removal of the MIG layout"
        busy = (found.GPU_HAS_WORK(change=change, work=", ".join(work)),) if work else ()
        return GpuRemoval(managed=True, findings=busy)


def conclude_gpus(plan: GpuPlan, waits: str = "") -> RoleResult:
    """The host's result. `waits`: changes that a reboot must complete."""
    entry = GpuEntry(version=plan.after, gpus=dict(plan.lines))
    return RoleResult(
        entry,
        file_digests(plan.wanted_files),
        plan.after,
        needs=(f"reboot: {waits}",) if waits else (),
        findings=(found.GPU_WAITS(why=waits),) if waits else (),
    )


ROLE = GpuRole()
