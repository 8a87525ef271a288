"""The table of all checks: those of checks.yaml, and those of GPUs in hardware.yaml. Pure."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from gpufleet.core.names import count_noun
from gpufleet.doctor.gpus import OF_A_GPU
from gpufleet.doctor.hardware import EventCheck, HardwareCheck, HardwareRow, load_hardware
from gpufleet.doctor.models import DoctorCheck, Verdict, load_checks

READINGS = "host.readings"


@lru_cache(maxsize=1)
def all_checks() -> tuple[DoctorCheck, ...]:
    """Every check, errors in the kernel's log first."""
    known = load_hardware()
    return (*map(_of_row, (*known.events, *known.checks)), *load_checks().checks)


def choose_checks(only: Collection[str], skipped: Collection[str]) -> tuple[DoctorCheck, ...]:
    """The checks that count: those of `only`, or all, without those of `skipped`. A check of a GPU
    counts together with the one that says if the GPU was read."""
    guard = [READINGS] if any(name.startswith(OF_A_GPU) for name in only) else []
    wanted = {*only, *guard} or {check.id for check in all_checks()}
    return tuple(check for check in all_checks() if check.id in wanted and check.id not in skipped)


def _of_row(row: HardwareRow) -> DoctorCheck:
    reads, threshold, since = "", "", None
    if isinstance(row, EventCheck):
        reads = f"{'XID' if row.kind == 'xid' else 'SXid'} in the kernel log of this boot"
        threshold = f"in the last {count_noun(row.days, 'day')}" if row.days else ""
    elif isinstance(row, HardwareCheck):
        reads, since, threshold = row.reads, row.since, _condition(row)
    return DoctorCheck(
        id=row.id,
        title=row.title,
        reads=reads,
        fails=row.meaning,
        threshold=threshold,
        severity=Verdict(row.severity.upper()),
        since=str(since or ""),
        after=row.after,
        steps=row.steps,
        source=row.source,
    )


def _condition(check: HardwareCheck) -> str:
    """When a check fails, in words: "above 511", "below most of its peers"."""
    words = {
        "is": ", ".join(map(str, check.among)),
        "is not": ", ".join(map(str, check.is_not)),
        "has": check.has,
        "says": "its text" if check.matches else "",
        "above": "" if check.above is None else str(check.above),
        "below": "" if check.below is None else str(check.below),
        "differs from": check.differs_from,
    }
    found = [f"{word} {value}" for word, value in words.items() if value]
    if check.peers:
        found.append("below most of its peers" if check.peers == "below" else "unlike its peers")
    return f"{found[0]}, while {' and '.join(check.when)}" if check.when else found[0]
