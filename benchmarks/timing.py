"""One run of a program: how long it took, what it computed and how much memory it had."""

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
    """A program that was to be timed failed, or did not do what it was timed for."""


@dataclass(frozen=True, slots=True)
class Run:
    """`wall` and `cpu` in seconds, `memory` in MiB: the peak of the largest process."""

    wall: float
    cpu: float
    memory: float
    output: str


def stamped(words: Sequence[str | Path], env: Mapping[str, str]) -> list[tuple[float, str]]:
    """Run a program and give its lines, each with the seconds since the start at which it came.

    A last empty line has the whole time. RunFailed where its status is not 0.
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
    """Run a program in the project's folder; RunFailed where its status is not 0.

    `log` takes its output. The kernel reports what the program used, its children included. Memory
    is at least that of this process, because the kernel counts from before the exec.
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
