"""The hosts of a run in parts, each for a worker, and the report that they make together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from gpufleet.core.excerpt import beginning
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.names import counted, folded
from gpufleet.core.progress import elapsed, fit
from gpufleet.core.visible import one_line
from gpufleet.run import findings
from gpufleet.run.received import received
from gpufleet.run.report import BAD, HostReport

LARGEST = 100  # hosts of a shard: what is lost with a worker, and the step of a failure budget
SHOWN = 2  # ranges of names
LONGEST = 300  # characters of a line that a worker printed
STOPPED = (ExitStatus.INTERRUPTED, ExitStatus.TERMINATED)  # its report has what was done
EARLY = (findings.NOT_BEGUN.code, findings.CUT_SHORT.code)
REFUSALS = (ExitStatus.USAGE, ExitStatus.NOTHING)


@dataclass(frozen=True, slots=True)
class Shard:
    """Hosts that one worker runs on."""

    number: int
    hosts: tuple[str, ...]

    @property
    def label(self) -> str:
        short = folded(self.hosts)
        return ", ".join(short[:SHOWN]) + (", …" if len(short) > SHOWN else "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a worker handed over. `report`: JSON, "" where its process left none; `status`: of that
    process; `output`: the last lines that it printed; `problem`: why there is no report, where that
    is known."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        strict=True, revalidate_instances="always"
    )
    report: str = ""
    status: Annotated[int, Field(ge=-64, le=255)] = 0
    output: str = ""
    problem: str = ""

    @property
    def said(self) -> str:
        """The last line that it printed."""
        return last_line(self.output)

    @property
    def refused(self) -> ExitStatus | None:
        """The status of a process that did nothing because of how it was called, as for a wrong
        option; every other part is called in the same way."""
        return ExitStatus(self.status) if not self.report and self.status in REFUSALS else None

    @property
    def is_killed(self) -> bool:
        """Whether a signal ended its process."""
        return not self.report and self.status < 0


@dataclass(frozen=True, slots=True)
class Result:
    """What a part came to. `completed`: the operations of its hosts were carried out, with or
    without success."""

    hosts: list[HostReport] = field(default_factory=list)
    completed: bool = False


@dataclass(frozen=True, slots=True)
class Working:
    """A shard that a worker has. `said`: the last line that it printed."""

    label: str
    seconds: float
    said: str = ""


@dataclass(frozen=True, slots=True)
class Whole:
    """A run on several workers at one moment. Counts are of hosts."""

    seconds: float
    hosts: int
    workers: int
    working: tuple[Working, ...]
    done: int
    failed: int


def cut(hosts: Sequence[str], workers: int) -> list[Shard]:
    """Shards of nearly the same size, as many for each worker, of at most `LARGEST` hosts."""
    if not hosts:
        return []
    rounds = -(-len(hosts) // (workers * LARGEST))
    count = min(workers * rounds, len(hosts))
    ends = [len(hosts) * place // count for place in range(count + 1)]
    return [
        Shard(number, tuple(hosts[first:last]))
        for number, (first, last) in enumerate(pairwise(ends), start=1)
    ]


def result_of(shard: Shard, outcome: Outcome, *, dry: bool) -> Result:
    """The hosts of a shard: as its worker reported them, or not reached, with the reason. `dry`:
    it was to preview."""
    if not outcome.report:
        return _lost(shard, outcome, f"its process ended with status {outcome.status}")
    try:
        report = received(outcome.report)
        known = {name: report.host(name) for name in shard.hosts if name in report.hosts}
    except ValueError as error:
        return _lost(shard, outcome, f"its report is not valid: {error}")
    if report.exit_status != outcome.status:  # what ended pyinfra is in its output alone
        return _lost(shard, outcome, f"its process ended with status {outcome.status}")
    if report.dry != dry:
        return _lost(shard, outcome, "it previewed" if report.dry else "it did not only preview")
    hosts = [
        known.get(name) or _unreached(name, findings.NOT_REPORTED(host=name))
        for name in shard.hosts
    ]
    failed = failed_of(hosts)
    if (
        not failed
        and outcome.status not in STOPPED
        and (outcome.status or not (dry or report.completed))
    ):
        return _lost(shard, outcome, f"it ended early, with status {outcome.status}")
    none_left = failed == len(hosts) and not any(_ended_early(host) for host in hosts)
    return Result(hosts, report.completed or none_left)


def _ended_early(host: HostReport) -> bool:
    return any(finding.code in EARLY for finding in host.findings)


def _lost(shard: Shard, outcome: Outcome, why: str) -> Result:
    why, said = brief(outcome.problem or why), outcome.said.rstrip(".") or "nothing"
    lost = {name: findings.WORKER_LOST(host=name, why=why, output=said) for name in shard.hosts}
    return Result([_unreached(name, finding) for name, finding in lost.items()])


def brief(text: str) -> str:
    """A reason that another machine gives, in one line: without secrets, not long, no period."""
    return one_line(beginning(text, LONGEST)).rstrip(".")


def not_begun(names: Iterable[str]) -> list[HostReport]:
    """Hosts that no worker got."""
    return [_unreached(name, findings.NOT_BEGUN(host=name)) for name in names]


def in_order(parts: Mapping[str, HostReport], names: Iterable[str]) -> list[HostReport]:
    """The hosts as the inventory has them."""
    return [parts[name] for name in names if name in parts]


def failed_of(parts: Iterable[HostReport]) -> int:
    """How many hosts failed or were not reached."""
    return sum(part.status in BAD for part in parts)


def over_budget(failed: int, hosts: int, percent: int | None) -> bool:
    """Whether more of all the hosts have failed than `percent` allows; None: any number may."""
    return percent is not None and failed * 100 > percent * hosts


def lines(whole: Whole, width: int, height: int) -> list[str]:
    """The run on a terminal of that size: a line for it, and one for each worker."""
    room = max(height - 2, 1)
    rows = [_row(each) for each in sorted(whole.working, key=lambda each: -each.seconds)]
    return [fit(line, width) for line in [_head(whole), *rows[: room - 1]]]


def beat(whole: Whole) -> str:
    """The run in one line for a log, with what takes the longest."""
    if not whole.working:
        return _head(whole)
    return f"{_head(whole)}; {_row(max(whole.working, key=lambda each: each.seconds)).strip()}"


def _head(whole: Whole) -> str:
    text = f"Running on {counted(whole.hosts, 'host')} with {counted(whole.workers, 'worker')}"
    text += f", {elapsed(whole.seconds)}: {whole.done} done"
    return f"{text}, {whole.failed} failed" if whole.failed else text


def _row(each: Working) -> str:
    said = f": {one_line(each.said)}" if each.said else ""
    return f"  {one_line(each.label)}, {elapsed(each.seconds)}{said}"


def last_line(text: str) -> str:
    """The last of these lines that says something."""
    return text.rstrip().rpartition("\n")[2].strip()[:LONGEST]


def _unreached(name: str, finding: Finding) -> HostReport:
    return HostReport(name, status="not reached", failed=True, findings=[finding])
