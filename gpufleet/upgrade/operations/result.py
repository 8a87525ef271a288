"""The result of a step on one host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.causes import find_reason_line
from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_field
from gpufleet.core.visible import BAR, one_line
from gpufleet.driver.findings.host import GPU_BUSY
from gpufleet.gpu.findings import GPU_HAS_WORK
from gpufleet.host.findings import ANOTHER_RUN, CHANGED_SINCE, REBOOT_FAILED
from gpufleet.run.report import BAD_STATUSES, HostReport
from gpufleet.upgrade.findings.hosts import IN_USE

REASON = 500  # characters
OUTPUT_CHARS = 160  # of them for the line of an output that says why
# another run is at work on the host, or its GPUs are in use
BUSY_FINDINGS = (IN_USE, GPU_BUSY, GPU_HAS_WORK, ANOTHER_RUN, CHANGED_SINCE)
BUSY_CODES = frozenset(kind.code for kind in BUSY_FINDINGS)
STOPPED = "GF012"  # says only that another finding stops the host


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step on one host."""

    ok: bool
    reason: str = ""
    plan: Mapping[str, Any] = field(default_factory=dict)  # output of the step `look`
    code: str = ""  # of the finding that stopped it
    blockers: tuple[str, ...] = ()  # every finding that stops it
    busy: bool = False  # host or GPUs are in use: it may succeed later
    reached: bool = True  # else the host does not answer: it may succeed later
    silent: bool = False  # its cluster does not answer: it may succeed later
    touched: bool = False  # a command of the step was begun: the host may have been changed


def step_result(found: HostReport | Finding, *, touched: bool) -> StepResult:
    """The result, from the report of a step or from the finding about an unreachable host.
    `touched`: an operation of the step was begun."""
    if isinstance(found, Finding):
        reason = one_line(found.text)[:REASON]
        return StepResult(False, reason, code=found.code, reached=False)
    seen: Mapping[str, Any] = found.plan.get("upgrade") or {}
    if found.status not in BAD_STATUSES and not found.errors:
        return StepResult(True, plan=seen, touched=touched)
    stops = [each for each in found.findings if each.blocks and each.code != STOPPED]
    first = stops[0] if stops else None
    code = first.code if first else ""
    reason = one_line(first.text if first else _said(found.errors))[:REASON]
    reached = found.status != "not reached" and code != REBOOT_FAILED.code  # it is away
    busy = code in BUSY_CODES
    blockers = tuple(one_line(each.text)[:REASON] for each in stops)
    return StepResult(
        False, reason, seen, code, blockers, busy=busy, reached=reached, touched=touched
    )


def _said(errors: list[str]) -> str:
    """The message of a failed operation, the line of its output that says why, and the remedy."""
    first = errors[0] if errors else "it gave no reason"
    lines = [line.removeprefix(BAR) for line in first.splitlines()[1:]]
    ours = [line.strip() for line in lines if not line.startswith(BAR)]
    output = (line.removeprefix(BAR) for line in lines if line.startswith(BAR))
    why = quote_field(find_reason_line(output), OUTPUT_CHARS).rstrip(".")
    return " ".join([*ours[:1], *([f"It failed with: {why}."] if why else []), *ours[1:]]) or first
