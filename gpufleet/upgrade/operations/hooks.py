"""Runs the user's commands on this machine, each for one host."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable

from gpufleet.core.process import Process
from gpufleet.core.secrets import hide_secrets
from gpufleet.core.visible import one_line

MAX_HOOK_LINE_CHARS = 200  # characters of the last line that a command printed
MAX_HOOK_BYTES = 1024 * 1024  # bytes that it may print
HOOK_POLL_SECONDS = 0.1  # seconds between checks of a command


def run_command(
    command: str, host: str, timeout: float, is_over: Callable[[], bool] | None = None
) -> str | None:
    """Run a command to its end. Returns why it failed, or None. Replaces `{host}` in it by the
    host's name. `is_over`: True if the command must be ended."""
    words = [word.replace("{host}", host) for word in shlex.split(command)]
    environment = {**os.environ, "GPUFLEET_HOST": host}
    try:
        process = Process(
            words, timeout=timeout, most=MAX_HOOK_BYTES, environment=environment, merged=True
        )
    except OSError as error:
        return f"it cannot be started: {error.strerror or error}"
    while (result := process.poll()) is None:
        if is_over and is_over():
            process.end()
            return "it was ended"
        time.sleep(HOOK_POLL_SECONDS)
    if result.ok:
        return None
    lines = [line for line in hide_secrets(result.stdout).splitlines() if line.strip()]
    last = one_line(lines[-1].strip())[:MAX_HOOK_LINE_CHARS] if lines else "no output"
    return result.why or f"exit status {result.code}: {last}"
