"""A run on several workers while it goes on: which shard is where, what has come back."""

from __future__ import annotations

import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType

from pydantic import TypeAdapter, ValidationError

from gpufleet.cli.workers import LOOK, Order, Workers, tail_of
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.live import LiveProgress
from gpufleet.core.names import counted
from gpufleet.core.visible import printed
from gpufleet.run import lifecycle
from gpufleet.run.report import HostReport
from gpufleet.run.shards import (
    Outcome,
    Shard,
    Whole,
    Working,
    beat,
    brief,
    failed_of,
    last_line,
    lines,
    over_budget,
    result_of,
)

OUTCOME = TypeAdapter(Outcome)
TRIES = 2  # of a shard whose process a signal ended
SIGNALS = {**lifecycle.SIGNALS, signal.SIGHUP: (ExitStatus.TERMINATED, "Hung up.")}
AGAIN = "The workers end in order; Ctrl+C ends them at once."
AT_ONCE = "Ended at once. What the hosts at work have is not known: run again."


@dataclass(slots=True)
class Part:
    """A shard that a worker has."""

    shard: Shard
    log: Path
    dry: bool
    begun: float = field(default_factory=time.monotonic)


class Sharded:
    """A run on several workers: its hosts so far, and what goes on. Used in one thread."""

    def __init__(self, hosts: int, percent: int | None, logs: Path) -> None:
        """`logs`: the folder for what the workers print."""
        self.total, self.percent, self.logs = hosts, percent, logs
        self.started = datetime.now(timezone.utc)
        self.parts: dict[str, HostReport] = {}
        self.left: list[str] = []  # hosts that no worker got
        self.completed = True  # of every part by now
        self.refused: Outcome | None = None  # of a worker that was called in a wrong way
        self.interrupted: ExitStatus | None = None
        self._did_more = False  # than to be refused
        self._killed: dict[Shard, tuple[Part, Outcome]] = {}  # by a signal; to run again
        self._asked = False  # to end, by SIGINT or SIGTERM
        self._workers: Workers | None = None
        self._running: dict[Future[Outcome], Part] = {}
        self._began = time.monotonic()
        self._tries: Counter[Shard] = Counter()
        self._shown = LiveProgress(
            lambda width, height: lines(self.whole(), width, height), lambda: beat(self.whole())
        )

    def whole(self) -> Whole:
        now = time.monotonic()
        working = [
            Working(part.shard.label, now - part.begun, last_line(tail_of(part.log)))
            for part in list(self._running.values())
        ]
        failed = self.failed
        return Whole(
            now - self._began, self.total, self._workers.count if self._workers else 0,
            tuple(working), len(self.parts) - failed, failed,
        )  # fmt: skip

    @property
    def failed(self) -> int:
        """How many hosts failed by now."""
        return failed_of(list(self.parts.values()))

    @property
    def is_over_budget(self) -> bool:
        """Whether more hosts failed than may."""
        return over_budget(self.failed, self.total, self.percent)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Progress is shown, and signals end the workers first."""
        before = {number: signal.signal(number, self._interrupt) for number in SIGNALS}
        if before[signal.SIGHUP] is signal.SIG_IGN:  # nohup
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._shown.start()
        try:
            yield
        finally:
            self._shown.stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def on(
        self, workers: Workers, shards: Sequence[Shard], order: Callable[[Shard], Order]
    ) -> None:
        """Run shards, each on the first of these workers that is free."""
        self._workers = workers
        left = deque(shards)
        while True:
            while left and len(self._running) < workers.count and not self._is_over:
                self._begin(workers, order(left.popleft()))
            if not self._running:
                break
            for future in wait(self._running, LOOK, FIRST_COMPLETED).done:
                part, outcome = self._running.pop(future), outcome_of(future)
                if outcome.is_killed and self._tries[part.shard] < TRIES:
                    self._killed[part.shard] = part, outcome
                    left.appendleft(part.shard)
                else:
                    self._take(part, outcome)
        for shard in left:
            if shard in self._killed:  # and the run was over before its next try
                self._take(*self._killed[shard])
            else:
                self.left += shard.hosts

    def _begin(self, workers: Workers, order: Order) -> None:
        shard = order.shard
        self._tries[shard] += 1
        if shard in self._killed:
            ended = f"A worker ended with status {self._killed.pop(shard)[1].status}"
            self._shown.say(f"{ended}: its {counted(len(shard.hosts), 'host')} run again")
        self._running[_submitted(workers, order)] = Part(shard, Path(order.log), order.dry)

    def _take(self, part: Part, outcome: Outcome) -> None:
        result = result_of(part.shard, outcome, dry=part.dry)
        self.parts |= {found.name: found for found in result.hosts}
        self.completed = self.completed and result.completed
        if not outcome.refused:
            self._did_more = True
        elif not self.refused:
            self.refused = outcome
        if outcome.output and not part.log.exists():  # of a worker elsewhere
            with suppress(OSError):
                part.log.write_text(outcome.output + "\n", "utf-8", "backslashreplace")

    @property
    def did_nothing(self) -> bool:
        """Whether every part that began was refused."""
        return bool(self.refused) and not self._did_more

    @property
    def _is_over(self) -> bool:
        """Whether no further shard is to begin."""
        return bool(self.interrupted or self.refused or self.is_over_budget)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """End the workers in order; what they have done is in the report. Again: at once, but not
        for SIGHUP, which comes together with others."""
        status, word = SIGNALS[signal.Signals(number)]
        if number != signal.SIGHUP and self._asked:
            self._end_at_once(status)
        self._asked = self._asked or number != signal.SIGHUP
        if self.interrupted is None:
            self.interrupted = status
            if self._workers:
                self._workers.stop()
            lifecycle.print_error(f"{word} {AGAIN}")

    def _end_at_once(self, status: ExitStatus) -> None:
        if self._workers:
            self._workers.kill()
        self._shown.abandon()
        lifecycle.print_error(f"{AT_ONCE} Output of the workers: {self.logs}")
        lifecycle.end(status)


def _submitted(workers: Workers, order: Order) -> Future[Outcome]:
    """A task, which has failed where the workers do not take it."""
    try:
        return workers.submit(order)
    except Exception as error:  # noqa: BLE001 - a boundary: that of one part
        failed: Future[Outcome] = Future()
        failed.set_exception(error)
        return failed


def outcome_of(future: Future[Outcome]) -> Outcome:
    """What a task returned; or the reason, of a worker that is lost, or never began."""
    try:
        error = future.exception()
    except CancelledError as cancelled:
        error = cancelled
    if error:
        return Outcome(problem=brief(f"{type(error).__name__}: {printed(error, str)}"))
    try:
        return OUTCOME.validate_python(future.result())
    except (ValidationError, AttributeError):  # a pickle may leave out a field
        return Outcome(problem="it returned something else than gpufleet does")
