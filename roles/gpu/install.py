"""Gives the GPUs of one host their layout and settings, in this order."""

from __future__ import annotations

from gpufleet.gpu import operations as gpus
from gpufleet.gpu.plan import GpuPlan
from gpufleet.gpu.role import ROLE as GPU
from gpufleet.gpu.role import conclude_gpus
from gpufleet.host import files, reboot
from gpufleet.host.operation import host_role
from gpufleet.node.operations import provenance
from gpufleet.node.operations.node import RunNode
from gpufleet.role.result import RoleResult


def install(node: RunNode) -> None:
    """Apply the plan of the GPUs; GPUs that are as wanted are not touched."""
    plan = node.plan.of(GPU)
    if plan and not _settled(node, plan):
        _apply(node, plan)


def _settled(node: RunNode, plan: GpuPlan) -> bool:
    """True if no step has work to do. Even then, steps cost more than asking the host."""
    return not plan.applies and provenance.is_current(node, conclude_gpus(plan))


@host_role("GPUs")
def _apply(node: RunNode, plan: GpuPlan) -> None:
    files.write_files("Write the wanted layout", node.facts, plan.files)

    def ready() -> bool:
        return node.driver_version is not None

    done = gpus.apply_layout("Divide and limit the GPUs", lambda: plan.applies, ready, plan.drained)

    def waits() -> str:
        return gpus.layout_waits(done.stdout_lines) if done.is_complete() else ""

    reboot.reboot_if_needed(
        "Reboot if required",
        lambda: waits() or None,
        node.may_reboot,
        node.settings.host.reboot_timeout,
        False,
    )
    gpus.apply_layout(
        "Check the GPUs after the reboot", lambda: bool(waits()) and node.may_reboot, ready
    )

    def result() -> RoleResult:
        if not ready():
            return conclude_gpus(plan, "the layout is made when the driver is loaded")
        return conclude_gpus(plan, "" if node.may_reboot else waits())

    provenance.record_role("Record the layout", node, result)
