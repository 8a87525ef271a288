"""SIGKILL to a controller at some moment of its run."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def killed(
    words: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> bool:  # fmt: skip
    """Start a run and kill it with all of its processes after some seconds; False if it ended."""
    with subprocess.Popen(
        words, env=environment, cwd=cwd, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return True
    return False
