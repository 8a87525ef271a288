"""The benchmark's arithmetic: runs summed up, ratios, and whether a budget is kept. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Summary:
    """Minimum, median and maximum of some runs, in the unit of the runs."""

    count: int
    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Summary:
        """Raises ValueError without a single value."""
        if not values:
            raise ValueError("no run to sum up")
        return cls(len(values), min(values), median(values), max(values))

    def __str__(self) -> str:
        return f"{digits(self.low)} / {digits(self.middle)} / {digits(self.high)}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the budget: the measured value and the limit."""

    budget: str  # the limit: docs/explanation/benchmarks.md
    measured: str
    kept: bool
    look: str  # where to look when it is not kept

    def __str__(self) -> str:
        line = f"{'pass' if self.kept else 'MISS'}  {self.budget}: {self.measured}"
        return line if self.kept else f"{line}\n      {self.look}"


def at_most(budget: str, measured: float, limit: float, unit: str, look: str) -> Verdict:
    """Kept where `measured` does not exceed `limit`; both in `unit`."""
    text = f"{digits(measured)} {unit}, allowed {digits(limit)} {unit}"
    return Verdict(budget, text, measured <= limit, look)


def at_least(budget: str, measured: float, limit: float, unit: str, look: str) -> Verdict:
    """Kept where `measured` reaches `limit`; both in `unit`."""
    text = f"{digits(measured)} {unit}, wanted {digits(limit)} {unit}"
    return Verdict(budget, text, measured >= limit, look)


def growth(points: dict[int, float]) -> float | None:
    """Growth per host between the smallest and the largest number of hosts, or None if they are
    equal."""
    first, last = min(points), max(points)
    return None if first == last else (points[last] - points[first]) / (last - first)


def digits(value: float) -> str:
    """Three figures that count: 0.12, 1.23, 12.3, 123, 1234."""
    places = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{places}f}"
