"""The time of a run: steady within a process, whatever is done to the clock of the machine."""

from __future__ import annotations

import time


def elapsed() -> float:
    """Seconds that only ever pass; those of a suspend count where the system knows them."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


class Clock:
    """Seconds since 1970 by the clock at the start of the process, and what passed since."""

    def __init__(self) -> None:
        self._start = time.time() - elapsed()

    def now(self) -> float:
        return self._start + elapsed()
