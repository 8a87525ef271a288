"""Running a command of this machine and saying clearly when it fails."""

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
    """A program in a process group of its own, of which nothing is left behind the block.

    A compiler that go has started would otherwise go on when go, or we, are ended.
    """

    early: list[int] = []  # signals that came before there was a process to end
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


def leave(process: subprocess.Popen[str]) -> None:
    """Wait for the end of a program and keep its process id taken, for its group has that name."""
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
    """Run `command`; with `check`, a status other than 0 raises SandboxError with the last lines.

    A command that exceeds `timeout` (seconds) or does not exist counts as failed as well. With
    `group`, which takes no `stdin`, all that it has started ends with it.
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
        done = subprocess.CompletedProcess(words, 124, "", f"no end after {timeout} seconds")
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
    """The same again; SandboxError with the last lines where its status is not 0."""
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
