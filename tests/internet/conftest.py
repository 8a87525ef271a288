"""A table at the end: each step, and if it ran against the real thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.internet.places import REAL

Note = Callable[[str], None]


@pytest.fixture
def note(record_property: Callable[[str, object], None]) -> Note:
    """Records REAL or IMITATED for the table."""
    return lambda against: record_property("against", against)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    rows = []
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            known = dict(getattr(report, "user_properties", ()))
            against = known.get("against", "not run" if outcome == "skipped" else "unknown")
            why = report.longrepr[2] if outcome == "skipped" else outcome
            rows.append((against, report.nodeid.rpartition("::")[2], why))
    terminalreporter.section("against the real thing")
    for against, step, why in sorted(rows, key=lambda row: (row[0] != REAL, row)):
        terminalreporter.write_line(f"{against:14} {step}: {why}")
    count = Counter(against for against, _, why in rows if why == "passed")
    terminalreporter.write_line(f"{count[REAL]} of {len(rows)} steps passed against {REAL}")
