"""Running a command of this machine and saying clearly when it fails."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpufleet.sandbox.errors import SandboxError, kinds
from gpufleet.visible import Lines


def run(
    command: Sequence[str | Path],
    *,
    check: bool = True,
    timeout: float | None = None,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `command`; with `check`, a status other than 0 raises SandboxError with the last lines.

    A command that exceeds `timeout` (seconds) or does not exist counts as failed as well.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
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
    except subprocess.TimeoutExpired:
        done = subprocess.CompletedProcess(words, 124, "", f"no end after {timeout} seconds")
    except OSError as error:  # missing or not executable
        done = subprocess.CompletedProcess(words, 127, "", str(error))
    return checked(words, done) if check else done


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
