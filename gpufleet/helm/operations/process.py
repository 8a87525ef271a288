"""Run helm with limits on its time and the size of its output."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from gpufleet.core.limits import HELM_SAYS, HELM_WARNS, MIB

LOOK_EVERY = 0.1  # seconds between two polls of the process
GRACE = 10  # seconds between SIGTERM and SIGKILL
TALKS = (
    f"helm prints more than the limits of {HELM_SAYS // MIB} MiB of output and "
    f"{HELM_WARNS // 1024} KiB of errors"
)

Tick = Callable[[float], None]  # called while the process runs, with the seconds since its start


@dataclass(frozen=True, slots=True)
class Result:
    """The output of a process. `code`: its exit status; None if it timed out."""

    code: int | None
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        return self.code == 0


def run_program(
    command: Sequence[str],
    timeout: float,
    *,
    environment: Mapping[str, str] | None = None,
    given: bytes = b"",
    tick: Tick | None = None,
    pass_fds: Sequence[int] = (),
) -> Result:
    """Run a program for at most `timeout` seconds; `tick` is called meanwhile, and stops it if it
    raises. `given`: its standard input. Raises OSError if it cannot start."""
    with (
        tempfile.TemporaryFile() as source,  # unnamed: removed automatically
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        source.write(given)
        source.seek(0)
        process = subprocess.Popen(
            command, env=environment, stdin=source, stdout=out, stderr=err, pass_fds=pass_fds
        )
        try:
            code = _wait(process, timeout, tick, (out, err))
        finally:
            _end(process)
        if _talks(out, err):
            return Result(code or 1, "", f"Error: {TALKS}")
        return Result(code, _text(out), _text(err))


def _wait(
    process: subprocess.Popen[bytes],
    timeout: float,
    tick: Tick | None,
    said: tuple[IO[bytes], IO[bytes]],
) -> int | None:
    """The exit status; None if it timed out, 1 if it printed too much."""
    began = time.monotonic()
    while True:
        try:
            return process.wait(LOOK_EVERY)
        except subprocess.TimeoutExpired:
            ran = time.monotonic() - began
        if _talks(*said):
            return 1
        if ran > timeout:
            return None
        if tick:
            tick(ran)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a running process; helm marks a release as failed after SIGTERM."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _talks(out: IO[bytes], err: IO[bytes]) -> bool:
    sizes = (os.fstat(file.fileno()).st_size for file in (out, err))
    return any(size > most for size, most in zip(sizes, (HELM_SAYS, HELM_WARNS), strict=True))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
