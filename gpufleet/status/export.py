"""A fleet as JSON and as CSV. status.schema.json describes the JSON. Pure."""

from __future__ import annotations

import csv
import io
import unicodedata
from datetime import datetime, timezone
from typing import Any

from gpufleet import __version__
from gpufleet.core.visible import one_line
from gpufleet.status.groups import Group, by_property
from gpufleet.status.models import ClusterRow, FleetStatus, Row

SCHEMA = 1  # version of the JSON; increased when a field is removed or changes its meaning
COLUMNS = ("host", "groups", "model", "gpus", "layout", "driver", "driver_loaded", "toolkit",
           "runtime", "kernel", "os", "reached", "flags", "codes", "kind", "releases",
           "time")  # fmt: skip
GROUP_COLUMNS = ("value", "hosts", "gpus", "flags", "names", "time")
FORMULA = "=+-@"  # start a formula in spreadsheets; so do their full-width forms
SEPARATOR = ";"  # of cells in locales with a decimal comma


def document_head(inventory: str, now: int) -> dict[str, Any]:
    """The first keys of every JSON document about a fleet. `now`: seconds since 1970."""
    return {"schema": SCHEMA, "gpufleet": __version__, "inventory": inventory, "time": _utc(now)}


def _utc(now: int) -> str:
    return datetime.fromtimestamp(now, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def fleet_json(fleet: FleetStatus, now: int, by: str | None = None) -> dict[str, Any]:
    """Every host with its flags, and the groups by a property if `by` is set."""
    groups = [
        {
            "value": group.value or None,
            "hosts": list(group.names),
            "gpus": group.gpus,
            "flags": group.flags,
        }
        for group in (by_property(fleet, by) if by else ())
    ]
    return {
        **document_head(fleet.inventory, now),
        "hosts": {row.name: _host(row) for row in fleet.rows},
        "clusters": {row.name: _cluster(row) for row in fleet.clusters},
        "group_by": by,
        "groups": groups if by else None,
    }


def _host(row: Row) -> dict[str, Any]:
    return {
        "reached": row.reached,
        "groups": list(row.groups),
        "gpus": [{"model": model, "count": number} for model, number in row.models],
        "layout": row.layout or None,
        "driver": row.driver or None,
        "driver_loaded": row.loaded,
        "toolkit": row.toolkit or None,
        "runtimes": [{"name": name, "version": version} for name, version in row.runtimes],
        "kernel": row.kernel or None,
        "os": row.os or None,
        "flags": list(row.flags),
        "steps": list(row.steps),
        "findings": [{"flag": note.flag, **note.finding.as_dict()} for note in row.notes],
        "accepted": [finding.as_dict() for finding in row.accepted],
    }


def _cluster(row: ClusterRow) -> dict[str, Any]:
    return {
        "reached": row.reached,
        "releases": dict(row.releases),
        "flags": list(row.flags),
        "steps": list(row.steps),
        "findings": [{"flag": note.flag, **note.finding.as_dict()} for note in row.notes],
    }


def as_csv(fleet: FleetStatus, now: int, by: str | None = None) -> str:
    """A line per host and cluster, or per group of hosts. Blanks separate the items of a list.

    `now`: seconds since 1970; each line ends with it, so that the files of many days are a history.
    """
    if by:
        head_line: tuple[str, ...] = (by, *GROUP_COLUMNS[1:])
        lines = [_group_line(group) for group in by_property(fleet, by)]
    else:
        head_line, lines = COLUMNS, [_host_line(row) for row in fleet.rows]
        lines += [_cluster_line(row) for row in fleet.clusters]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head_line)
    writer.writerows([_cell(cell) for cell in (*line, _utc(now))] for line in lines)
    return out.getvalue()


def _host_line(row: Row) -> tuple[object, ...]:
    return (
        row.name, " ".join(row.groups), row.model, row.gpus, row.layout, row.driver, row.loaded,
        row.toolkit, row.runtime_text, row.kernel, row.os, row.reached, " ".join(row.flags),
        _codes(row), "host", "",
    )  # fmt: skip


def _cluster_line(row: ClusterRow) -> tuple[object, ...]:
    of_hosts = [""] * (COLUMNS.index("reached") - 1)
    releases = SEPARATOR.join(f"{name} {version}" for name, version in row.releases)
    flags = " ".join(row.flags)
    return (row.name, *of_hosts, row.reached, flags, _codes(row), "cluster", releases)


def _codes(row: Row | ClusterRow) -> str:
    return " ".join(dict.fromkeys(note.finding.code for note in row.notes))


def _group_line(group: Group) -> tuple[object, ...]:
    flags = " ".join(f"{flag}={number}" for flag, number in group.flags.items())
    return (group.value, len(group.rows), group.gpus, flags, " ".join(group.names))


def _cell(value: object) -> object:
    """A value. Text becomes one line and never a formula: hosts and inventories determine it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    return SEPARATOR.join(map(_marked, one_line(value).split(SEPARATOR)))


def _marked(text: str) -> str:
    """The text, quoted if a spreadsheet would read it as a formula, alone in a cell."""
    first = text.lstrip(' "')[:1]
    is_formula = first and unicodedata.normalize("NFKC", first) in FORMULA
    return f"'{text}" if is_formula else text
