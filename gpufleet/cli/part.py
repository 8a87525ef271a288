"""The process that runs pyinfra on a part of the hosts: it ends when the one that started it is
gone.

Standard library alone: pyinfra replaces parts of it by gevent's, and what is here must not wait
for that.
"""

from __future__ import annotations

import _thread
import json
import os
import runpy
import signal
import sys
from time import sleep

GRACE = 30  # seconds for an end in order
STANDARD_INPUT = 0
CHUNK = 65536  # bytes
TERMINATED = 128 + signal.SIGTERM


def main() -> None:
    """Run pyinfra as `python -m pyinfra` does. Standard input is a pipe of the starting process,
    which writes pyinfra's options, a JSON list on one line, and nothing else: it is closed to end
    this one, or because that one is gone."""
    pipe = os.dup(STANDARD_INPUT)
    sys.argv += _options(pipe)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STANDARD_INPUT)
    os.close(nothing)
    _thread.start_new_thread(_end_with, (pipe,))
    runpy.run_module("pyinfra", run_name="__main__", alter_sys=True)


def _options(pipe: int) -> list[str]:
    """Ends this process where the other one is gone."""
    text = b""
    while not text.endswith(b"\n"):
        if not (read := os.read(pipe, CHUNK)):
            sys.exit(TERMINATED)
        text += read
    found: list[str] = json.loads(text)
    return found


def _end_with(pipe: int) -> None:
    """Wait until a pipe is closed; then end this process as SIGTERM does, in order at first."""
    os.read(pipe, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    sleep(GRACE)
    os.killpg(0, signal.SIGKILL)
