"""Runs programs on this machine, with limits of time and output.

A program and its children form one process group. To end it, the group gets SIGTERM, and after
`GRACE` seconds SIGKILL.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO

from gpufleet.core.limits import MIB

MAX_OUTPUT_BYTES = 64 * MIB
GRACE = 10.0  # seconds between SIGTERM and SIGKILL, and after SIGKILL for the kernel
PROCESS_POLL_SECONDS = 0.1  # maximum seconds between two polls
RUNS_AS_ANOTHER_USER = (
    "it runs as another user, as with sudo, and cannot be ended: it may still be at work"
)

Tick = Callable[[float], None]  # called while a program runs, with the seconds since its start


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The result of a program. `code`: its exit status, negative for a signal, None after its
    deadline; `why`: why gpufleet ended it, or ""."""

    code: int | None
    stdout: str
    stderr: str = ""
    why: str = ""

    @property
    def ok(self) -> bool:
        return self.code == 0


class Process:
    """A running program. Raises OSError if it cannot be started.

    `given`: its standard input; `merged`: errors go to its output; `prompts`: it may ask the user
    at the terminal, so it keeps our standard input and process group; `bound`: it gets SIGTERM if
    this process, or the thread that starts the program, is killed.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        timeout: float | None = None,
        given: bytes = b"",
        most: int = MAX_OUTPUT_BYTES,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        merged: bool = False,
        prompts: bool = False,
        bound: bool = False,
    ) -> None:
        self._timeout, self._most, self._own_group = timeout, most, not prompts
        self._began = time.monotonic()
        self._result: ProgramResult | None = None
        self._out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 while the program runs
        self._err: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        with tempfile.TemporaryFile() as source:  # a pipe could block the writer
            source.write(given)
            source.seek(0)
            self._process = subprocess.Popen(
                command, env=environment, cwd=folder,
                stdin=None if prompts else source, stdout=self._out,
                stderr=subprocess.STDOUT if merged else self._err,
                start_new_session=self._own_group, preexec_fn=_bind if bound else None,
            )  # fmt: skip
        _RUNNING.add(self)

    def poll(self) -> ProgramResult | None:
        """The result, or None while the program runs. Ends a program that exceeds its limits."""
        if self._result is not None:
            return self._result
        code = self._process.poll()
        late = self._timeout is not None and time.monotonic() - self._began > self._timeout
        talks = sum(os.fstat(each.fileno()).st_size for each in (self._out, self._err)) > self._most
        if code is None and not late and not talks:
            return None
        why = ""
        if talks:
            why = f"it printed more than {self._most / MIB:g} MiB"
        elif code is None:
            why = f"it was ended after {self._timeout:.0f} s"
        self.end()
        if code is None and self._process.poll() is None:
            why = RUNS_AS_ANOTHER_USER
        return self._leave(self._process.poll() if talks else code, why)

    def wait(self, tick: Tick | None = None) -> ProgramResult:
        """Wait for the result. If `tick` raises, the program is ended."""
        try:
            while (result := self.poll()) is None:
                ran = time.monotonic() - self._began
                if tick:
                    tick(ran)
                time.sleep(min(max(ran / 10, 0.001), PROCESS_POLL_SECONDS))
        finally:
            self.end()
        return result

    def end(self) -> None:
        """End the program and its children if it still runs."""
        end_all([self])

    def send(self, number: int) -> bool:
        """Send a signal to the group, except to processes of other users. Returns True if any
        process of it is left."""
        if self._process.poll() is not None and not self._own_group:
            return False
        try:
            (os.killpg if self._own_group else os.kill)(self._process.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    @property
    def runs(self) -> bool:
        return self._result is None and self._process.poll() is None

    def _leave(self, code: int | None, why: str) -> ProgramResult:
        out, err = (_text(file, self._most) for file in (self._out, self._err))
        self._result = ProgramResult(code, out, err, why)
        self._out.close()
        self._err.close()
        _RUNNING.discard(self)
        return self._result


_RUNNING: set[Process] = set()
_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1  # prctl(2)


def _bind() -> None:
    """Run in the child before its program: on Linux, the kernel ends it with this process."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def end_all(processes: Iterable[Process]) -> None:
    """End the running programs and their children. All share the same time limit."""
    left = [process for process in processes if process.runs]
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = [process for process in left if process.send(number)]
        ends = time.monotonic() + GRACE
        while left and time.monotonic() < ends:
            time.sleep(0.02)
            left = [process for process in left if process.runs or process.send(0)]


def signal_running(number: int) -> None:
    """Send a signal to every program that this process runs, without waiting."""
    for process in list(_RUNNING):
        process.send(number)


def run_in_front(
    command: Sequence[str], environment: Mapping[str, str], output: IO[str] | None = None
) -> int:
    """Run a program in the foreground of our terminal. Returns its exit status, or 128 plus the
    number of the signal that ended it. `output`: takes its standard output instead of the terminal.

    SIGTERM is passed on. The terminal's SIGINT reaches both: only the program acts on it.
    """
    child = subprocess.Popen(command, env=dict(environment), stdout=output)

    def pass_on(number: int, frame: FrameType | None) -> None:
        child.send_signal(number)

    def leave_it(number: int, frame: FrameType | None) -> None:
        return

    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
        signal.SIGINT: signal.signal(signal.SIGINT, leave_it),
    }
    try:
        status = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - status if status < 0 else status


def _text(file: IO[bytes], size: int) -> str:
    return os.pread(file.fileno(), size, 0).decode("utf-8", "replace")
