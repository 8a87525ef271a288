"""Commands of the user's on this machine, for one host each."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from contextlib import suppress

from gpufleet.core.redact import redact
from gpufleet.core.visible import one_line

SHOWN = 200  # characters of their output
GRACE = 10.0  # seconds from SIGTERM to SIGKILL


class Hook:
    """One command that runs; `{host}` in it stands for the host's name. Raises OSError."""

    def __init__(self, command: str, host: str, timeout: float) -> None:
        self.ends = time.monotonic() + timeout
        self.timeout = timeout
        words = [word.replace("{host}", host) for word in shlex.split(command)]
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 as long as the command runs
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT,
            env={**os.environ, "GPUFLEET_HOST": host},
        )  # fmt: skip

    def poll(self) -> str | None:
        """None while it runs; "" once it succeeded, else why it did not."""
        status = self.process.poll()
        if status is None and time.monotonic() < self.ends:
            return None
        if status is None:
            self.end()
            return f"it was ended after {self.timeout:.0f} s"
        return "" if status == 0 else f"exit status {status}: {self._said()}"

    def wait(self) -> str:
        """As `poll`, at its end."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(max(self.ends - time.monotonic(), 0))
        return self.poll() or ""

    def end(self) -> None:
        """End it, if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(GRACE)
            self.process.kill()
            self.process.wait()

    def _said(self) -> str:
        self.output.seek(0)
        text = self.output.read().decode("utf-8", "replace")
        return one_line(redact(" ".join(text.split())))[-SHOWN:] or "no output"


def run_hook(command: str, host: str, timeout: float) -> str:
    """Run a command to its end; "" if it succeeded, else why it did not."""
    try:
        return Hook(command, host, timeout).wait()
    except OSError as error:
        return f"it cannot be started: {error.strerror or error}"
