"""Operations on layout and settings of the GPUs of a host."""

from __future__ import annotations

from collections.abc import Callable

from pyinfra import host

from gpufleet.facts.gpu import LAYOUT_FILE
from gpufleet.gpu import findings
from gpufleet.gpu.files import GPUS_UNIT, PROGRAM
from gpufleet.host.asking import frame_command, framed_answer
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.shell import explain_finding, script_command

WAITS = "reboot "  # prefix of a line of gpufleet-gpus if only a reboot helps


@host_operation
def apply_layout(
    needed: Callable[[], bool], ready: Callable[[], bool], drained: bool = False
) -> Commands:
    """
    Give the GPUs their layout and settings, read them back, and enable the unit that repeats it at
    each boot. The output has `reboot …` for a change that only a reboot completes.

    + needed: something differs, or may differ
    + ready: True if the wanted driver is loaded; otherwise the unit does all at the next boot
    + drained: idle GPUs may be reset in this run
    """
    if not needed():
        host.noop("the GPUs are as wanted")
        return
    message = explain_finding(host.name, findings.GPU_NOT_CHANGED())
    program = PROGRAM if ready() else ""
    words = (message, program, GPUS_UNIT, "reset" if drained else "")
    yield frame_command(script_command("gpu/apply_layout", *words))


@host_operation
def check_layout() -> Commands:
    """
    Compare MIG and ECC of the GPUs with the wanted state, by nvidia-smi alone.
    """
    message = explain_finding(host.name, findings.GPU_NOT_CHANGED())
    yield script_command("gpu/check_layout", message, LAYOUT_FILE)


@host_operation
def drop_layout(needed: bool) -> Commands:
    """
    Return the GPUs to whole GPUs with default limits, and disable the unit.

    + needed: gpufleet manages them
    """
    if not needed:
        host.noop("gpufleet did not change the GPUs")
        return
    message = explain_finding(host.name, findings.GPU_NOT_CHANGED())
    yield script_command("gpu/drop_layout", message, PROGRAM, LAYOUT_FILE, GPUS_UNIT)


def layout_waits(output: list[str]) -> str:
    """Changes that a reboot must complete, from the output of `apply_layout`, or ""."""
    said = framed_answer(output) or []
    return "; ".join(line.removeprefix(WAITS) for line in said if line.startswith(WAITS))
