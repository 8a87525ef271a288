"""Run commands of this machine; failures become findings."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from gpufleet.core.visible import Lines
from gpufleet_sandbox.errors import SandboxError, kinds


@contextmanager
def own_group(words: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program in its own process group, all of which is killed at the end of the block.

    Otherwise a compiler that go started would survive when go or this process is terminated.
    """

    early: list[int] = []  # signals received before the process started
    starting = True

    def end(number: int, frame: FrameType | None) -> None:
        if not starting:
            raise SystemExit(128 + number)
        early.append(number)

    ours = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, end) if ours else None
    try:
        process = subprocess.Popen(words, text=True, start_new_session=True, **options)
        try:
            starting = False
            if early:
                raise SystemExit(128 + early[0])
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
    finally:
        if ours:
            signal.signal(signal.SIGTERM, before)


def wait_unreaped(process: subprocess.Popen[str]) -> None:
    """Wait until a program exits, without reaping it: its process group keeps that ID."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def run(
    command: Sequence[str | Path],
    *,
    check: bool = True,
    timeout: float | None = None,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    group: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `command`; with `check`, a non-zero status raises SandboxError with the last lines.

    A command that exceeds `timeout` (seconds) or does not exist also fails. With `group`, which
    takes no `stdin`, its child processes are killed when it ends.
    """
    words = [str(word) for word in command]
    try:
        done = (
            _grouped(words, timeout, env=env, cwd=cwd)
            if group
            else subprocess.run(
                words,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                input=stdin,
                stdin=subprocess.DEVNULL if stdin is None else None,
                env=env,
                cwd=cwd,
            )
        )
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(words, 124, "", f"timed out after {timeout} seconds")
    except OSError as error:  # missing or not executable
        done = subprocess.CompletedProcess(words, 127, "", str(error))
    return checked(words, done) if check else done


def _grouped(
    words: Sequence[str], timeout: float | None, **options: Any
) -> subprocess.CompletedProcess[str]:
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with own_group(words, errors="replace", **pipes, **options) as process:
        out, err = process.communicate(timeout=timeout)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def checked(
    words: Sequence[str], done: subprocess.CompletedProcess[str]
) -> subprocess.CompletedProcess[str]:
    """Returns `done`; SandboxError with the last lines if its status is not 0."""
    if done.returncode != 0:
        raise SandboxError(
            kinds.COMMAND_FAILED(
                command=shlex.join(words)[:300],
                status=done.returncode,
                output=last_lines(done.stderr or done.stdout),
            )
        )
    return done


def last_lines(text: str, count: int = 8) -> Lines:
    """The last lines of a program's output, for an error message."""
    return Lines("\n".join(text.strip().splitlines()[-count:]))
