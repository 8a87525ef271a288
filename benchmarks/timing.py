"""Measure one run of a program: wall time, CPU time and memory."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SHOWN = 15  # lines of a failed program's output


class RunFailed(Exception):
    """A measured program failed, or did not do the work that is measured."""


@dataclass(frozen=True, slots=True)
class Run:
    """`wall` and `cpu` in seconds, `memory` in MiB: the peak of the largest process."""

    wall: float
    cpu: float
    memory: float
    output: str


def stamped(words: Sequence[str | Path], env: Mapping[str, str]) -> list[tuple[float, str]]:
    """Run a program. Returns its output lines, each with the seconds since the start.

    A last empty line has the total time. Raises RunFailed if the exit status is not 0.
    """
    began = time.monotonic()
    with subprocess.Popen(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, text=True, cwd=ROOT,
        env={**os.environ, **env, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stdout
        lines = [(time.monotonic() - began, line.rstrip("\n")) for line in process.stdout]
    if process.returncode:
        tail = "\n".join(line for _, line in lines[-SHOWN:])
        raise RunFailed(f"{words[0]} ended with status {process.returncode}:\n{tail}")
    return [*lines, (time.monotonic() - began, "")]


def timed(
    words: Sequence[str | Path],
    *,
    log: Path,
    stdin: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Run:
    """Run a program in the project's folder. Raises RunFailed if the exit status is not 0.

    `log` is the file for its output. The kernel reports CPU time and memory, including child
    processes. The memory is at least that of this process, because the kernel counts from before
    the exec.
    """
    with open(log, "wb") as out, open(stdin or os.devnull, "rb") as source:
        began = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in words],
            stdin=source,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            cwd=ROOT,
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    output = log.read_text(errors="replace")
    if process.returncode:
        tail = "\n".join(output.splitlines()[-SHOWN:])
        raise RunFailed(f"{words[0]} ended with status {process.returncode}; {log}:\n{tail}")
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, output)
