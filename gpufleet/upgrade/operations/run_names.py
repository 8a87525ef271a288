"""Names of runs, which sort by the order in which they were begun."""

from __future__ import annotations

import calendar
import re
import secrets
import time
from collections.abc import Iterable

STAMP = "%Y%m%d-%H%M%S"
NAME = re.compile(r"(\d{8}-\d{6})-[0-9a-f]{6}", re.ASCII)


def new_name(known: Iterable[str]) -> str:
    """By the time of day, and later than those of all other runs: the clock may have been set
    back."""
    last = max(map(_time_of, known), default=0)
    stamp = time.strftime(STAMP, time.gmtime(max(time.time(), last + 1)))
    return f"{stamp}-{secrets.token_hex(3)}"


def _time_of(name: str) -> int:
    """Seconds since 1970; 0 for a name that is none of a run."""
    found = NAME.fullmatch(name)
    try:
        return calendar.timegm(time.strptime(found[1], STAMP)) if found else 0
    except ValueError:
        return 0
