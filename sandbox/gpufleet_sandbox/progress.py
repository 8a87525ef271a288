"""Shows that a long command is at work: building images takes minutes without a message."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpufleet.core.live import LiveProgress


@contextmanager
def show_progress() -> Iterator[Callable[[str], None]]:
    """A function that prints a message with the time. Until the next message, the latest one stays
    visible: as the last line of a terminal, otherwise again every 15 seconds.

    "  12.0 s  building the mirror's packages", and then
    "  27.0 s  at work: building the mirror's packages"
    """
    start, latest = time.monotonic(), [""]

    def line() -> str:
        at_work = f"at work: {latest[0]}" if latest[0] else "at work"
        return f"{time.monotonic() - start:6.1f} s  {at_work}"

    shown = LiveProgress(lambda width, height: [line()[:width]], line)

    def say(message: str) -> None:
        latest[0] = message
        shown.say(f"{time.monotonic() - start:6.1f} s  {message}")

    shown.start()
    try:
        yield say
    finally:
        shown.stop()
