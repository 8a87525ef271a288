"""A run in parts: its hosts, its progress, its interrupts and its report."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType

from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.live import LiveProgress
from gpufleet.core.names import count_noun
from gpufleet.core.process import signal_running
from gpufleet.core.progress import format_elapsed
from gpufleet.run import findings
from gpufleet.run.invocation import Invocation
from gpufleet.run.lifecycle import SIGNALS, ReportedRun, Reports, exit_process
from gpufleet.run.part import HostPart, ProcessOutcome, not_reached, part_hosts, run_part
from gpufleet.run.report import BAD_STATUSES, HostReport
from gpufleet.run.report_file import print_error, print_run_finding

MAX_PART_HOSTS = 100  # hosts that a lost part affects; --fail-percent counts in these steps
PARTS_POLL_SECONDS = 0.5  # seconds between two checks for parts that ended


def split_hosts(hosts: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """Split hosts into parts of nearly the same size: the same number of parts for each of `count`
    workers, and at most MAX_PART_HOSTS hosts in a part."""
    rounds = -(-len(hosts) // (count * MAX_PART_HOSTS))
    parts = min(count * rounds, len(hosts))
    ends = [len(hosts) * place // parts for place in range(parts + 1)] if parts else []
    return [tuple(hosts[first:last]) for first, last in pairwise(ends)]


class WholeRun(ReportedRun):
    """A run in parts: the hosts that are done so far, and the parts that still run."""

    def __init__(
        self, asked: Invocation, files: Reports, names: Sequence[str], percent: int | None
    ) -> None:
        super().__init__(asked, files=files)
        self.names, self.percent = names, percent
        self.hosts: dict[str, HostReport] = {}
        self.completed = True  # True if all parts so far completed
        self.logs: Path | None = None  # folder with the output of parts with a failed host
        self._began, self._running = time.monotonic(), 0

    @property
    def failed(self) -> int:
        return sum(host.status in BAD_STATUSES for host in self.hosts.values())

    @property
    def is_over_budget(self) -> bool:
        return self.percent is not None and self.failed * 100 > self.percent * len(self.names)

    def run(self, parts: Sequence[HostPart], executor: Executor, count: int) -> None:
        """Run parts, `count` at a time; no part begins after an interrupt or over budget."""
        waiting = list(reversed(parts))
        running: dict[Future[ProcessOutcome], HostPart] = {}
        while running or (waiting and not self.interrupted and not self.is_over_budget):
            while waiting and len(running) < count and not self.interrupted:
                part = waiting.pop()
                running[executor.submit(run_part, part)] = part
            self._running = len(running)
            for future in wait(running, PARTS_POLL_SECONDS, FIRST_COMPLETED).done:
                self._take(running.pop(future), future)
            if self.is_over_budget:
                count = 0

    def _take(self, part: HostPart, future: Future[ProcessOutcome]) -> None:
        try:
            outcome = future.result()
        except Exception as error:  # noqa: BLE001 a boundary: a part whose worker is lost
            outcome = ProcessOutcome(None, "", f"{type(error).__name__}: {error}")
        hosts, completed = part_hosts(part, outcome)
        self.hosts |= {host.name: host for host in hosts}
        self.completed = self.completed and completed
        if any(host.status in BAD_STATUSES for host in hosts):
            self.logs = self.logs or Path(tempfile.mkdtemp(prefix="gpufleet-parts-"))
            name = f"{part.hosts[0].replace('/', '-')}.log"
            (self.logs / name).write_text(outcome.output, "utf-8", "backslashreplace")

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show progress. The first signal ends the parts of this machine in order; the second one
        ends everything at once."""
        progress = LiveProgress(lambda width, height: [self._line()[:width]], self._line)
        before = {number: signal.signal(number, self._interrupt) for number in SIGNALS}
        progress.start()
        try:
            yield
        finally:
            progress.stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _line(self) -> str:
        parts, hosts = count_noun(self._running, "part"), count_noun(len(self.names), "host")
        spent, done = format_elapsed(time.monotonic() - self._began), len(self.hosts) - self.failed
        return f"Running {parts} of {hosts}, {spent}: {done} done, {self.failed} failed"

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        status, word = SIGNALS[signal.Signals(number)]
        if self.interrupted:
            signal_running(signal.SIGKILL)
            print_error("Ended at once. What the hosts at work have is not known: run again.")
            exit_process(status)
        self.interrupted = status
        signal_running(signal.SIGTERM)
        print_error(f"{word} Parts of this machine end in order. Ctrl+C ends all at once.")

    def report(self, *, dry: bool) -> ExitStatus:
        """Print and write the report of the whole run."""
        left = [name for name in self.names if name not in self.hosts]
        if left and self.is_over_budget and not self.interrupted:
            hosts = count_noun(len(self.names), "host")
            over = findings.OVER_BUDGET(failed=self.failed, hosts=hosts, percent=self.percent)
            print_run_finding(over)
        self.hosts |= {name: not_reached(name, findings.NOT_BEGUN(host=name)) for name in left}
        if self.logs:
            print_error(f"Output of the parts in which a host failed: {self.logs}")
        completed = self.completed and not (dry or left or self.interrupted)
        well = not self.failed and (dry or completed)
        status = ExitStatus.CONVERGED if well else ExitStatus.FAILED
        found = [self.hosts[name] for name in self.names]
        self.finish(found, status, dry=dry, completed=completed)
        return self.interrupted or status
