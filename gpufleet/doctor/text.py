"""Verdicts as text for a terminal of any width. Texts from hosts are never read as markup. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from gpufleet.core.names import MAX_DETAILED_HOSTS, count_noun, name_hosts
from gpufleet.core.visible import each_line, one_line
from gpufleet.doctor.export import next_steps, step_command
from gpufleet.doctor.fix import fix_command
from gpufleet.doctor.models import (
    CheckOutcome,
    JudgedFleet,
    NextStep,
    SubjectVerdict,
    Verdict,
)
from gpufleet.doctor.table import all_checks
from gpufleet.status.detail import Detail
from gpufleet.status.detail_text import show_topics
from gpufleet.status.text import show_findings, topic_table

SHOWS_REMEDY = "plan"  # this step only shows remedies of findings
ABOUT_GPUS, OF_THE_CHAIN = ("gpu.", "host.sxid"), "chain."  # beginnings of checks
STYLES_OF_VERDICTS = {
    Verdict.PASS: "green",
    Verdict.INFO: "cyan",
    Verdict.WARNING: "yellow",
    Verdict.UNKNOWN: "bold magenta",
    Verdict.CRITICAL: "bold red",
}


def show_verdicts(console: Console, judged: JudgedFleet) -> None:
    """Print one host or cluster in depth, or hosts and clusters in groups."""
    if len(judged.hosts) == 1 and not judged.clusters:
        _show_host(console, judged.hosts[0], judged.details[0], judged.inventory)
    elif len(judged.clusters) == 1 and not judged.hosts:
        _show_causes(console, judged.clusters[0], judged.inventory)
    else:
        _show_fleet(console, judged)


def _show_host(console: Console, found: SubjectVerdict, detail: Detail, inventory: str) -> None:
    """Print the verdict, its causes with the next steps, each check, then the host in depth."""
    _show_causes(console, found, inventory)
    console.print()
    if found.results and detail.has:
        console.print(topic_table(_results(found), "-"))
    show_topics(console, detail)
    codes = {cause.code for cause in found.causes}
    show_findings(
        console,
        [(detail.row.name, each) for each in detail.findings if each.code not in codes],
    )


def _show_causes(console: Console, found: SubjectVerdict, inventory: str) -> None:
    console.print(_heading(found.verdict, one_line(found.name)))
    for cause in found.causes:
        _show_cause(console, cause, found, inventory)


def _heading(verdict: Verdict, text: str) -> Text:
    return Text.assemble((verdict.value, STYLES_OF_VERDICTS[verdict]), f" {text}")


def _show_cause(
    console: Console, cause: CheckOutcome, found: SubjectVerdict, inventory: str
) -> None:
    code = f" ({cause.code})" if cause.code else ""
    gpu = f" {cause.gpu}" if cause.gpu else ""
    style = STYLES_OF_VERDICTS[cause.verdict]
    text = f"{gpu}: {each_line(cause.cause)}{code}"
    console.print(Text.assemble("  ", (cause.check, style), text))
    if cause.remedy:
        console.print(Text(f"    {each_line(cause.remedy)}", "dim"))
    if follow := found.consequences_of(cause):
        console.print(Text(f"    Follows from it: {', '.join(follow)}"))
    for number, step in enumerate(_useful_steps(cause)):
        word = "Next" if number == 0 else "Then"
        place = " (on the host, as root)" if step.runs_on == "host" else ""
        command = step_command(step, inventory, found, cause)
        console.print(Text.assemble(f"    {word}{place}: ", (command, "bold")))
        console.print(Text(f"      {step.does} Interrupts: {step.interrupts}.", "dim"))
    if command := fix_command(cause, found, inventory):
        console.print(Text.assemble("    Or fix it, after a question: ", (command, "bold")))


def _useful_steps(cause: CheckOutcome) -> list[NextStep]:
    """The next steps. A remedy that is printed already needs no step to show it."""
    return [step for name, step in next_steps(cause) if name != SHOWS_REMEDY or not cause.remedy]


def _results(found: SubjectVerdict) -> Iterator[tuple[str, list[str]]]:
    """The checks by topic. Of GPUs, only those that fail, and the number of the others."""
    of_gpus = [each for each in found.results if each.check.startswith(ABOUT_GPUS)]
    chain = [each for each in found.results if each.check.startswith(OF_THE_CHAIN)]
    rest = [each for each in found.results if each not in of_gpus and each not in chain]
    passed = sum(not each.verdict.fails for each in of_gpus)
    failed = [_check_line(each) for each in of_gpus if each.verdict.fails]
    yield "GPU checks", [*failed, *([f"passed: {passed}"] if passed else [])]
    yield "chain", [_check_line(each) for each in chain]
    yield "host", [_check_line(each) for each in rest]


def _check_line(result: CheckOutcome) -> str:
    gpu = f" {result.gpu}" if result.gpu else ""
    read = f": {one_line(result.read)}" if result.read else ""
    follows = f", follows from {result.follows}" if result.follows else ""
    return f"{result.verdict.value} {result.check}{gpu}{read}{follows}"


def _show_fleet(console: Console, judged: JudgedFleet) -> None:
    """Print one group for each verdict and cause, the worst first, then the numbers."""
    for verdict, members in _groups(judged.every):
        names = name_hosts([member.name for member in members])
        causes = {member.name: member.causes[0] for member in members if member.causes}
        text = f"{names}: {_common(causes)}" if causes else names
        console.print(_heading(verdict, text))
        for line in _next_lines(members, [*causes.values()], judged.inventory):
            console.print(Text(f"  {line}", "dim"))
    console.print()
    for noun, found in (("host", judged.hosts), ("cluster", judged.clusters)):
        counts = Counter(each.verdict for each in found)
        parts = [f"{counts[each]} {each.value}" for each in reversed(Verdict) if counts[each]]
        if parts:
            console.print(Text(f"{count_noun(len(found), noun)}: {', '.join(parts)}"))


def _groups(found: Sequence[SubjectVerdict]) -> list[tuple[Verdict, list[SubjectVerdict]]]:
    """Hosts or clusters with one verdict and one worst cause, the worst first."""
    groups: dict[tuple[Verdict, str], list[SubjectVerdict]] = defaultdict(list)
    for each in found:
        causes = each.causes
        groups[each.verdict, causes[0].check if causes else ""].append(each)
    ordered = sorted(groups.items(), key=lambda group: -group[0][0].rank)
    return [(verdict, members) for (verdict, _), members in ordered]


def _common(causes: Mapping[str, CheckOutcome]) -> str:
    """The cause that all hosts have; if the details differ, those of each of a few hosts, or the
    check's own sentence. `causes`: by host."""
    first = next(iter(causes.values()))
    if len({each.cause for each in causes.values()}) == 1:
        return f"{first.check}: {each_line(first.cause)}"
    if len(causes) <= MAX_DETAILED_HOSTS:
        lines = [f"{one_line(name)}: {each_line(each.cause)}" for name, each in causes.items()]
        return "\n  ".join([f"{first.check}:", *lines])
    fails = {check.id: check.fails for check in all_checks()}
    return f"{first.check}: {fails[first.check].rstrip('.')}; the details differ by host"


def _next_lines(
    members: Sequence[SubjectVerdict], causes: Sequence[CheckOutcome], inventory: str
) -> Iterator[str]:
    """The next step or the remedy of the only host, or the command that looks at one of several."""
    if not causes:
        return
    more = max(len(member.causes) for member in members) - 1
    if more:
        yield f"{'Up to ' if len(members) > 1 else ''}{count_noun(more, 'more cause')}"
    host, steps, remedy = members[0].name, _useful_steps(causes[0]), causes[0].remedy
    if more or len(members) > 1 or not (steps or remedy):
        yield f"Next: gpufleet doctor {one_line(inventory)} --limit {one_line(host)}"
        return
    if not steps:
        yield each_line(remedy)
        return
    step = steps[0]
    place = " (on the host, as root)" if step.runs_on == "host" else ""
    yield f"Next{place}: {step_command(step, inventory, members[0], causes[0])}"
