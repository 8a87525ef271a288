"""A process of ours that gets the signals which end this one."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType


def run_child(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program to its end; returns its exit status, 130 or 143 where a signal ended it.

    SIGTERM is passed on. SIGINT of a terminal reaches both: only the child acts on it, so that it
    ends in order.
    """
    child = subprocess.Popen(words, env=dict(environment))

    def pass_on(number: int, frame: FrameType | None) -> None:
        child.send_signal(number)

    def leave_it(number: int, frame: FrameType | None) -> None:
        return

    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
        signal.SIGINT: signal.signal(signal.SIGINT, leave_it),
    }
    try:
        status = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 128 - status if status < 0 else status
