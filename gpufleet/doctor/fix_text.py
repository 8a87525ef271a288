"""Fixes as text for a terminal: before they run, and after. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.text import Text

from gpufleet.core.names import name_hosts
from gpufleet.core.visible import each_line, one_line
from gpufleet.doctor.fix import FixPlan
from gpufleet.doctor.models import SubjectVerdict, Verdict, worst_verdict

NOTHING_TO_FIX = "{check} fails on no host: nothing to fix."


def show_fix_plan(console: Console, plan: FixPlan) -> None:
    """Print each command with its hosts and what it interrupts, and the hosts without a fix."""
    if not plan.fixes and not plan.refused:
        console.print(Text(NOTHING_TO_FIX.format(check=plan.check)))
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for fix in plan.fixes:
        groups[fix.command, fix.interrupts].append(fix.name)
    for (command, interrupts), names in groups.items():
        console.print(Text(f"{plan.check} on {name_hosts(names)}:"))
        console.print(Text.assemble("  Fix (on the host): ", (each_line(command), "bold")))
        console.print(Text(f"    Interrupts: {interrupts}.", "dim"))
    for no in plan.refused:
        console.print(Text(f"{plan.check} on {one_line(no.name)}: no safe fix. {one_line(no.why)}"))
        console.print(Text(f"  {no.step}", "dim"))


def fixed_lines(
    plan: FixPlan, before: Mapping[str, SubjectVerdict], after: Mapping[str, SubjectVerdict]
) -> Iterator[str]:
    """A line for each host with a fix: the check and the verdict, before and after."""
    for fix in plan.fixes:
        was, now = before[fix.name], after[fix.name]
        check = _change(_of_check(plan.check, was), _of_check(plan.check, now))
        verdict = _change(was.verdict, now.verdict)
        yield f"{one_line(fix.name)}: {plan.check} {check}; verdict {verdict}"


def _of_check(check: str, found: SubjectVerdict) -> Verdict:
    """The verdict of one check, UNKNOWN if the host was not read."""
    if found.verdict is Verdict.UNKNOWN and len(found.results) == 1:
        return Verdict.UNKNOWN
    return worst_verdict(each.verdict for each in found.results if each.check == check)


def _change(before: Verdict, after: Verdict) -> str:
    return f"was {before.value}, is {after.value}"
