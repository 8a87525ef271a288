"""The meaning of a check of the doctor, for `gpufleet explain`. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from gpufleet.doctor.models import DoctorCheck, load_steps
from gpufleet.status.explained import EXPLAIN_WIDTH, Explained

_URL = re.compile(r"https://[^\s;,]+")


def describe_check(check: DoctorCheck) -> Explained:
    """What a check reads, when it fails, what it follows, its next steps and its source."""
    head = textwrap.fill(f"{check.id}: check of gpufleet doctor, {check.title}", EXPLAIN_WIDTH)
    facts = {
        "Reads": check.reads,
        "Fails": f"{check.fails.rstrip('.')} ({check.severity.value})",
        "Threshold": check.threshold,
        "Since": f"driver branch {check.since}" if check.since else "",
        "Follows": ", ".join(check.after),
        "Findings": ", ".join(check.codes),
    }
    lines = [
        textwrap.fill(f"{name}: {value}", EXPLAIN_WIDTH, break_on_hyphens=False)
        for name, value in facts.items()
        if value
    ]
    parts = [head, "\n".join(lines), "\n".join(_steps(check))]
    return Explained("check", check.id, "\n\n".join([*parts, *_URL.findall(check.source)]))


def _steps(check: DoctorCheck) -> Iterator[str]:
    """The next steps, with the names in braces that the doctor fills in."""
    yield "Next steps, of which gpufleet doctor fills in the names in braces:"
    for name in check.steps:
        step = load_steps().steps[name]
        place = "On the host: " if step.runs_on == "host" else ""
        yield textwrap.fill(
            f"{place}{step.does} Interrupts: {step.interrupts}.",
            EXPLAIN_WIDTH,
            break_on_hyphens=False,
            initial_indent="  ",
            subsequent_indent="  ",
        )
        yield f"    {step.command}"
