"""Wait for an external condition by polling."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
INTERVAL = 0.1


def wait_until(condition: Callable[[], T], seconds: float) -> T:
    """Poll until `condition` is true or `seconds` have passed; returns its last value."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(INTERVAL)
    return value
