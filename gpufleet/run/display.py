"""Shows the progress of a pyinfra run: a line per active host, instead of pyinfra's line per host
and operation."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import click
import gevent
import pyinfra
from gevent import Greenlet
from pyinfra.api import Host, State
from pyinfra.api.state import StateStage

from gpufleet.core.live import LiveProgress, is_quiet, on_terminal
from gpufleet.core.progress import (
    LONG_STEP_SECONDS,
    Active,
    RunProgress,
    Stage,
    heartbeat_line,
    longest_steps,
    step_line,
    terminal_lines,
)
from gpufleet.run.invocation import Invocation, read_invocation
from gpufleet.run.last_line import LastLine

if TYPE_CHECKING:  # it imports this module
    from gpufleet.run.reporting import RunReport

LOGS = 20  # maximum number of logs to read at a time
LOG_LINE_SECONDS = 2.0  # seconds that a heartbeat line waits for a read
STAGES: dict[StateStage, Stage] = {
    StateStage.Connect: "connecting",
    StateStage.Prepare: "reading",
    StateStage.Execute: "running",
}
# pyinfra's functions that print a line per host, and its table, which gpufleet's table replaces
PER_HOST = frozenset({"connect", "load_file", "run_host_op", "_run_host_op", "print_rows"})
# functions that print the output and the findings of a failed step, which the table repeats
REPEATED = frozenset({"print_host_combined_output", "_fail"})
HOST_LOG = "log"  # the method of a host with which deploys print
COUNTS_COMMANDS = re.compile(r"executed \d+ commands")  # pyinfra's words after a failed step
LAST_WORDS = re.compile(r"No hosts remaining!|Over .*% of hosts failed \(.*%\)")  # of a run
ENDED_EARLY = "{why}. The run ends here: see the table below for the reason."


class Display:
    """The progress of one run, read from pyinfra's state whenever lines are drawn."""

    def __init__(self, run: RunReport) -> None:
        self._run, self._state = run, run.state
        self._start = time.monotonic()
        self._operations_began: dict[str, float] = {}
        self._shown = LiveProgress(self._lines, self._beat)
        self._filter = Quiet(run.state, names=not self._shown.terminal)

    def start(self, asked: Invocation) -> None:
        """Show the progress from now on, unless the user wants pyinfra's own output, or pyinfra
        will ask on a terminal."""
        context = click.get_current_context(silent=True)
        if context and os.environ.get("NO_COLOR"):  # pyinfra ignores it
            context.color = False
        asks = on_terminal() and not (asked.yes or asked.dry)
        if pyinfra.is_cli and not asked.detail and not asks:
            os.environ["PYINFRA_PROGRESS"] = "off"  # its spinner, which the live lines replace
            pyinfra.logger.addFilter(self._filter)
            self._shown.start()

    def end(self) -> None:
        """Remove the live lines and restore pyinfra's own output."""
        self._shown.stop()
        pyinfra.logger.removeFilter(self._filter)

    def operation_start(self, op_hash: str) -> None:
        self._operations_began[op_hash] = time.monotonic()

    def operation_end(self, op_hash: str) -> None:
        changed: list[str] = []
        failed: list[str] = []
        for host, operations in self._state.ops.items():
            meta = operations[op_hash].operation_meta if op_hash in operations else None
            if meta is not None and meta.is_complete():
                changed += [host.name] if meta.did_change() else []
                failed += [host.name] if meta.did_error() else []
        seconds = time.monotonic() - self._operations_began[op_hash]
        if not is_quiet() and (line := step_line(self._name(op_hash), changed, failed, seconds)):
            self._shown.say(f"    {line}")

    def progress(self) -> RunProgress | None:
        """The present progress, or None before the run connects and after it ends."""
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
            return RunProgress(stage, seconds, len(hosts), silent=tuple(silent))
        working = [host for host in hosts if host.executing_op_hash]
        rest = Counter(self._where(host) for host in hosts if not host.executing_op_hash)
        return RunProgress(
            stage,
            seconds,
            len(hosts),
            tuple(self._active(host, now) for host in working),
            waiting=rest["waiting"],
            unchanged=rest["unchanged"],
            done=rest["done"],
            failed=rest["failed"],
            blocked=rest["blocked"],
        )

    def _is_silent(self, host: Host, stage: Stage) -> bool:
        answered = host.connected if stage == "connecting" else self._run.was_examined(host.name)
        return not answered and host not in self._state.failed_hosts

    def _where(self, host: Host) -> str:
        """The category of a host that runs no operation now."""
        if host in self._state.failed_hosts:
            reached = host in self._state.activated_hosts
            return "blocked" if reached and host.name not in self._run.touched else "failed"
        planned = len(self._state.ops[host])
        if not planned:
            return "unchanged"
        return "done" if self._run.carried_out[host.name] >= planned else "waiting"

    def _active(self, host: Host, now: float) -> Active:
        began = self._run.began.get(host.name, now)
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
        if found and gevent.wait(self._refresh(found, 1), timeout=LOG_LINE_SECONDS):
            found = self.progress()
        return heartbeat_line(found) if found else ""

    def _refresh(self, found: RunProgress, most: int) -> list[Greenlet]:
        """Read the logs of the steps that take longest; returns the reads."""
        slow = [active for active in longest_steps(found) if active.seconds >= LONG_STEP_SECONDS]
        hosts = [self._state.inventory.get_host(active.name) for active in slow[:most]]
        lines = [LastLine.of(host) for host in hosts]
        reads = [line.refresh() for line in lines if line]
        return [read for read in reads if read is not None]


class Quiet(logging.Filter):
    """Hides pyinfra's lines per host and operation, and without `names` also the names of
    operations, which live lines show. Warnings, errors and output of deploys stay.

    With --quiet, the output of a failed step is only in the table. pyinfra's error about a run that
    cannot continue names a line of code: gpufleet's words replace it.
    """

    def __init__(self, state: State, *, names: bool) -> None:
        super().__init__()
        self._state, self._names = state, names

    def filter(self, record: logging.LogRecord) -> bool:
        if self._is_repeated(record):
            return False
        if not _of_pyinfra(record):
            return True
        if record.levelno != logging.INFO:
            return _is_news(record)
        if is_quiet():
            return False
        if record.funcName == "print_rows":  # needed for pyinfra's question before the run
            return bool(self._state.current_stage != StateStage.Disconnect)
        if record.funcName in PER_HOST:
            return False
        return self._names or record.funcName == HOST_LOG

    def _is_repeated(self, record: logging.LogRecord) -> bool:
        """True for the output of a failed step with --quiet. That of a fact is in no table."""
        steps = self._state.current_stage == StateStage.Execute
        error = record.levelno == logging.ERROR and record.funcName in REPEATED
        return is_quiet() and steps and error


def _is_news(record: logging.LogRecord) -> bool:
    """False for a warning or error of pyinfra that gpufleet's table explains. The line about too
    many failed hosts gets gpufleet's words."""
    if record.levelno == logging.ERROR and COUNTS_COMMANDS.search(record.getMessage()):
        return False
    ended = LAST_WORDS.search(str(record.msg)) if record.funcName == "show" else None
    if ended:
        record.msg = ENDED_EARLY.format(why=ended.group())
    return not ended or "%" in ended.group()


def start_pyinfra() -> None:
    """Start pyinfra's command for a gpufleet command: the output of deploys, warnings and errors
    are printed. pyinfra's own lines are printed for --verbose, and for --dry without --yes, which
    lists operations."""
    from pyinfra_cli.main import main  # gevent replaces parts of the standard library

    pyinfra.is_cli = True  # as main() does, after the command line was read here
    asked = read_invocation()
    if not asked.detail and (asked.yes or not asked.dry):
        pyinfra.logger.addFilter(_is_for_users_of_gpufleet)
    main()  # type: ignore[no-untyped-call]


def _is_for_users_of_gpufleet(record: logging.LogRecord) -> bool:
    """False for progress and for why a host is unreachable, which gpufleet prints itself, and for
    the absence of a known_hosts file, which is no problem by itself."""
    if not _of_pyinfra(record):
        return True
    if record.levelno == logging.INFO:
        return record.funcName == HOST_LOG and not is_quiet()
    absent = any(isinstance(value, FileNotFoundError) for value in record.args or ())
    return record.funcName != "connect" and not absent


def _of_pyinfra(record: logging.LogRecord) -> bool:
    module = sys.modules.get("pyinfra")
    folder = str(getattr(module, "__path__", [""])[0])
    return record.pathname.startswith((folder, f"{folder}_cli"))
