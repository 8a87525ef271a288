"""SIGKILL to a controller at some moment of its run."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpufleet_sandbox.waiting import wait_until


def killed(
    words: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None,
    cwd: Path | None = None, begun: Callable[[], bool] = lambda: True,
) -> bool:  # fmt: skip
    """Start a run and kill all of its processes some seconds after it has `begun`. Returns whether
    the run was killed before it ended."""
    with subprocess.Popen(
        words, env=environment, cwd=cwd, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        wait_until(lambda: begun() or process.poll() is not None, 300)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return True
    return False
