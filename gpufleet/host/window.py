"""Maintenance windows: days and times of a week, in a time zone. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from math import gcd
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_PART = re.compile(r"(?:(\w{3})(?:-(\w{3}))? +)?(\d\d):(\d\d)-(\d\d):(\d\d)")
_OFFSETS = 15  # minutes; the offsets of all time zones, and their changes, are multiples of it
_WEEK = 7 * 24 * 60 * 60  # seconds


@dataclass(frozen=True, slots=True)
class Span:
    """Minutes of each of these days. A span that ends before it begins ends on the next day."""

    days: frozenset[int]
    begins: int
    ends: int

    def has(self, day: int, minute: int) -> bool:
        if self.begins < self.ends:
            return day in self.days and self.begins <= minute < self.ends
        late = day in self.days and minute >= self.begins
        return late or ((day - 1) % 7 in self.days and minute < self.ends)


@dataclass(frozen=True, slots=True)
class Window:
    """The times when hosts may be taken out of service."""

    spans: tuple[Span, ...]
    zone: ZoneInfo

    @classmethod
    def parse(cls, text: str, zone: str) -> Window:
        """Parse a window. Raises ValueError if the text is invalid or the time zone is unknown."""
        try:
            place = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError("must be a time zone such as Europe/Berlin or UTC") from error
        return cls(tuple(_span(part.strip()) for part in text.split(",")), place)

    def is_open(self, now: float) -> bool:
        """True if hosts may be taken out of service at `now`, in seconds since 1970."""
        local = datetime.fromtimestamp(now, self.zone)
        minute = local.hour * 60 + local.minute
        return any(span.has(local.weekday(), minute) for span in self.spans)

    def opens(self, now: float) -> float:
        """The next time when it is open, in seconds since 1970, or `now` if it is open."""
        step = 60 * gcd(_OFFSETS, *(span.begins for span in self.spans))
        moment = now
        for _ in range(_WEEK // step + 1):
            if self.is_open(moment):
                return moment
            moment += step - moment % step
        return moment


def _span(text: str) -> Span:
    found = _PART.fullmatch(text)
    if not found:
        raise ValueError("must be days and times, such as Mon-Thu 09:00-16:30 or 22:00-04:00")
    first, last = found[1] or "Mon", found[2] or found[1] or "Sun"
    if first not in DAYS or last not in DAYS:
        raise ValueError(f"names a day that is none of {' '.join(DAYS)}")
    low, high = DAYS.index(first), DAYS.index(last)
    days = range(low, high + 1) if low <= high else [*range(low, 7), *range(high + 1)]
    begins, ends = _minute(found[3], found[4]), _minute(found[5], found[6])
    if begins == ends:
        raise ValueError("must end at another time than it begins; all day is 00:00-24:00")
    return Span(frozenset(days), begins, ends)


def _minute(hour: str, minute: str) -> int:
    value = int(hour) * 60 + int(minute)
    if value > 24 * 60 or int(minute) > 59:
        raise ValueError("must have times from 00:00 to 24:00")
    return value
