"""Waiting for a condition outside, by asking again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
INTERVAL = 0.1


def wait_until(condition: Callable[[], T], seconds: float) -> T:
    """Ask until the answer is true or `seconds` are over; returns the last answer."""
    end = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < end:
        time.sleep(INTERVAL)
    return answer
