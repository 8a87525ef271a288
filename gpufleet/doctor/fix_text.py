"""Fixes as text for a terminal: before they run, and after. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from gpufleet.core.names import count_noun, name_hosts
from gpufleet.core.visible import each_line, one_line
from gpufleet.doctor.fix import FixPlan, PlannedFix
from gpufleet.doctor.models import JudgedFleet, SubjectVerdict, Verdict, worst_verdict


def show_fix_plan(console: Console, plan: FixPlan) -> None:
    """Print each command with its hosts or cluster and what it interrupts, then the hosts without
    a fix."""
    if not plan.fixes and not plan.refused:
        console.print(Text(f"{plan.check} fails nowhere: there is nothing to fix."))
    groups: dict[PlannedFix, list[str]] = defaultdict(list)
    for fix in plan.fixes:
        groups[replace(fix, name="", seen="", pod=None)].append(fix.name)
    for fix, names in groups.items():
        console.print(Text(f"{plan.check} on {name_hosts(names)}:"))
        console.print(Text.assemble(f"  Fix{fix.place}: ", (each_line(fix.command), "bold")))
        console.print(Text(f"    Interrupts: {fix.interrupts}.", "dim"))
    for no in plan.refused:
        console.print(
            Text(f"{plan.check} on {one_line(no.name)}: no safe fix. {each_line(no.why)}")
        )
        if no.step:
            console.print(Text(f"  {no.step}", "dim"))


def fix_question(plan: FixPlan) -> str:
    """The question before the commands run."""
    hosts = sum(fix.pod is None for fix in plan.fixes)
    parts = ((hosts, "host"), (len(plan.fixes) - hosts, "pod"))
    return f"Fix {' and '.join(count_noun(*part) for part in parts if part[0])}?"


def fixed_lines(plan: FixPlan, before: JudgedFleet, after: JudgedFleet) -> Iterator[str]:
    """A line for each host and cluster with a fix: the check and the verdict, before and after."""
    now = {each.name: each for each in after.every}
    fixed = {fix.name for fix in plan.fixes}
    for was in before.every:
        if was.name in fixed:
            found = now[was.name]
            check = _change(_of_check(plan.check, was), _of_check(plan.check, found))
            verdict = _change(was.verdict, found.verdict)
            yield f"{one_line(was.name)}: {plan.check} {check}; verdict {verdict}"


def _of_check(check: str, found: SubjectVerdict) -> Verdict:
    """The verdict of one check, UNKNOWN if the host was not read."""
    if found.verdict is Verdict.UNKNOWN and len(found.results) == 1:
        return Verdict.UNKNOWN
    return worst_verdict(each.verdict for each in found.results if each.check == check)


def _change(before: Verdict, after: Verdict) -> str:
    return f"was {before.value}, is {after.value}"
