"""Shows a run of pyinfra while it goes on: a line per host at work, in place of one per host and
operation."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable

import click
import gevent
import pyinfra
from gevent import Greenlet
from pyinfra.api import BaseStateCallback, Host, State
from pyinfra.api.state import StateStage

from gpufleet.core.live import LiveProgress, is_quiet, on_terminal
from gpufleet.core.progress import (
    LONG,
    Active,
    Progress,
    Stage,
    heartbeat,
    longest,
    step_line,
    terminal_lines,
)
from gpufleet.run.invocation import Invocation
from gpufleet.run.last_line import LastLine

DETAIL = ("-v", "-vv", "-vvv", "--debug", "--debug-all", "--debug-facts", "--debug-operations")
LOGS = 20  # hosts whose logs are read at a time, however large the terminal
PATIENCE = 2.0  # seconds that a line of a log file waits for them
STAGES: dict[StateStage, Stage] = {
    StateStage.Connect: "connecting",
    StateStage.Prepare: "reading",
    StateStage.Execute: "running",
}
# pyinfra's functions that print a line per host, and the rows of its table: ours follows
PER_HOST = frozenset({"connect", "load_file", "run_host_op", "_run_host_op", "print_rows"})


class Display(BaseStateCallback):
    """The progress of one run, by what pyinfra knows of its hosts.

    Its state is looked at when lines are drawn; callbacks say when an operation began and ended.
    """

    def __init__(self, state: State, examined: Callable[[str], bool]) -> None:
        self._state, self._examined = state, examined
        self._start = time.monotonic()
        self._operation_began = self._start
        self._began: dict[str, float] = {}
        self._completed: Counter[str] = Counter()
        self._shown = LiveProgress(self._lines, self._beat)
        self._filter = Quiet(state, names=not (self._shown.terminal or is_quiet()))

    @classmethod
    def begin(
        cls, state: State, asked: Invocation, examined: Callable[[str], bool]
    ) -> Display | None:
        """Show the progress of a run from now on; None where pyinfra's own output is asked for, or
        where pyinfra will ask on a terminal.

        `examined`: whether a host was read and planned.
        """
        _without_color()
        detail = any(word in DETAIL for word in asked.options)
        asks = on_terminal() and not (asked.yes or asked.dry)
        if not pyinfra.is_cli or detail or asks:
            return None
        display = cls(state, examined)
        os.environ["PYINFRA_PROGRESS"] = "off"  # its spinner: the live lines have more
        pyinfra.logger.addFilter(display._filter)
        display._shown.start()
        return display

    def end(self) -> None:
        """Remove the live lines; pyinfra's own are printed again."""
        self._shown.stop()
        pyinfra.logger.removeFilter(self._filter)

    def operation_start(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        self._operation_began = time.monotonic()

    def operation_host_start(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str
    ) -> None:
        self._began[host.name] = time.monotonic()

    def operation_host_success(  # type: ignore[override]
        self, state: State, host: Host, op_hash: str, retry_count: int = 0
    ) -> None:
        self._completed[host.name] += 1

    def operation_end(self, state: State, op_hash: str) -> None:  # type: ignore[override]
        changed: list[str] = []
        failed: list[str] = []
        for host, operations in self._state.ops.items():
            meta = operations[op_hash].operation_meta if op_hash in operations else None
            if meta is not None and meta.is_complete():
                changed += [host.name] if meta.did_change() else []
                failed += [host.name] if meta.did_error() else []
        seconds = time.monotonic() - self._operation_began
        name = self._name(op_hash) if self._shown.terminal else ""  # else pyinfra has printed it
        if not is_quiet() and (line := step_line(name, changed, failed, seconds)):
            self._shown.say(f"    {line}")

    def progress(self) -> Progress | None:
        """The run as it is now; None before it connects and after it is over."""
        state = self._state
        stage = STAGES.get(state.current_stage)
        if stage is None or not state.initialised:
            return None
        limit = state.limit_hosts
        hosts = [host for host in state.inventory if limit is None or host in limit]
        now = time.monotonic()
        seconds = now - self._start
        if stage != "running":
            silent = [host.name for host in hosts if self._is_silent(host, stage)]
            return Progress(stage, seconds, len(hosts), silent=tuple(silent))
        working = [host for host in hosts if host.executing_op_hash]
        rest = Counter(self._where(host) for host in hosts if not host.executing_op_hash)
        return Progress(
            stage,
            seconds,
            len(hosts),
            tuple(self._active(host, now) for host in working),
            waiting=rest["waiting"],
            unchanged=rest["unchanged"],
            done=rest["done"],
            failed=rest["failed"],
        )

    def _is_silent(self, host: Host, stage: Stage) -> bool:
        if host in self._state.failed_hosts:
            return False
        return not host.connected if stage == "connecting" else not self._examined(host.name)

    def _where(self, host: Host) -> str:
        """What a host that carries out no operation is counted as."""
        if host in self._state.failed_hosts:
            return "failed"
        planned = len(self._state.ops[host])
        if not planned:
            return "unchanged"
        return "done" if self._completed[host.name] >= planned else "waiting"

    def _active(self, host: Host, now: float) -> Active:
        began = self._began.get(host.name, now)
        line = LastLine.of(host)
        step = self._name(str(host.executing_op_hash))
        return Active(host.name, step, now - began, line.text if line else "")

    def _name(self, op_hash: str) -> str:
        meta = self._state.op_meta.get(op_hash)
        return ", ".join(sorted(meta.names)) if meta else ""

    def _lines(self, width: int, height: int) -> list[str]:
        found = self.progress()
        if found:
            self._refresh(found, LOGS)
        return terminal_lines(found, width, height) if found else []

    def _beat(self) -> str:
        found = self.progress()
        if found and gevent.wait(self._refresh(found, 1), timeout=PATIENCE):
            found = self.progress()
        return heartbeat(found) if found else ""

    def _refresh(self, found: Progress, most: int) -> list[Greenlet]:
        """Read the logs of the steps that take the longest; returns the reads."""
        slow = [active.name for active in longest(found) if active.seconds >= LONG][:most]
        lines = [LastLine.of(self._state.inventory.get_host(name)) for name in slow]
        reads = [line.refresh() for line in lines if line]
        return [read for read in reads if read is not None]


class Quiet(logging.Filter):
    """Keeps back what pyinfra prints per host and operation; without `names` the names of
    operations too, which live lines have. Warnings, errors and what deploys print stay."""

    def __init__(self, state: State, *, names: bool) -> None:
        super().__init__()
        self._state, self._names = state, names

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.INFO or not _of_pyinfra(record):
            return True
        if record.funcName == "print_rows":  # before the run, they are what pyinfra asks about
            return bool(self._state.current_stage != StateStage.Disconnect)
        if record.funcName in PER_HOST:
            return False
        return self._names or record.funcName == "log"


def _without_color() -> None:
    """pyinfra prints through click, which knows nothing of https://no-color.org."""
    context = click.get_current_context(silent=True)
    if context and os.environ.get("NO_COLOR"):
        context.color = False


def _of_pyinfra(record: logging.LogRecord) -> bool:
    module = sys.modules.get("pyinfra")
    folder = str(getattr(module, "__path__", [""])[0])
    return record.pathname.startswith((folder, f"{folder}_cli"))
