"""Panels as the dashboards write them: a number, lines over time, a table, bars."""

from __future__ import annotations

from dataclasses import replace

from dashboards.model import ONE, Panel, Query, Rows

Steps = tuple[float, float]
XID_ALERTS = (
    "GpuXidNeedsReset",
    "GpuXidNeedsReplacement",
    "GpuXidHardware",
    "GpuXidDriver",
    "GpuFellOffBus",
)


def number(
    title: str, about: str, expression: str, unit: str = "short", steps: Steps | None = None
) -> Panel:
    """One number; `steps` as of Panel."""
    return Panel(title, "stat", about, (Query(expression, ONE),), unit, 4, steps)


def lines(
    title: str,
    about: str,
    *queries: tuple[str, Rows, str],
    unit: str = "short",
    width: int = 12,
    stacked: bool = False,
) -> Panel:
    """Lines over time. Each query has an expression, the rows that it returns, and a legend."""
    return Panel(title, "stacked" if stacked else "series", about, _queries(queries), unit, width)


def table(
    title: str, about: str, expression: str, rows: Rows, unit: str = "short", width: int = 12
) -> Panel:
    """A table of current rows, which may be empty."""
    return Panel(title, "table", about, (Query(expression, rows),), unit, width)


def bars(
    title: str,
    about: str,
    *queries: tuple[str, Rows, str],
    unit: str = "short",
    width: int = 12,
) -> Panel:
    """A bar for each of a few things, as they are now."""
    return Panel(title, "bars", about, _queries(queries), unit, width)


def of_alerts(panel: Panel, *alerts: str) -> Panel:
    """The panel that shows what these alerts are about."""
    return replace(panel, alerts=alerts)


def _queries(found: tuple[tuple[str, Rows, str], ...]) -> tuple[Query, ...]:
    return tuple(Query(expression, rows, legend) for expression, rows, legend in found)
