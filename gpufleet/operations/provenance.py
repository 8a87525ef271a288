"""The record on the host of what was installed, from where, by which version of gpufleet."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from pyinfra import host

from gpufleet import __version__
from gpufleet.operations.files import HOME, put
from gpufleet.operations.node import Node
from gpufleet.operations.operation import Commands, operation
from gpufleet.operations.reading import AddedPackages
from gpufleet.operations.shell import command
from gpufleet.plan.files import FileWrite

PATH = f"{HOME}/provenance.json"
SCHEMA = 1
KEPT_HISTORY = 20  # entries


def merge(old: dict[str, Any] | None, part: dict[str, Any], now: str) -> dict[str, Any] | None:
    """The record with a role's `part` in it and the change in its history; None for no change.

    `part` holds the role's own entry (driver, toolkit, exporter) and `files`, path -> sha256.
    """
    before = old or {}
    part = json.loads(json.dumps(part))  # lists and tuples are the same in the record
    new = {**part, "files": {**before.get("files", {}), **part.get("files", {})}}
    if all(before.get(key) == value for key, value in new.items()):
        return None
    head = {"schema": SCHEMA, "gpufleet": __version__, "time": now}
    merged = {**before, **head, **new}
    entry = {
        "time": now,
        "driver": _version(merged, "driver"),
        "toolkit": _version(merged, "toolkit"),
    }
    if version := _version(merged, "exporter"):
        entry["exporter"] = version
    merged["history"] = [*before.get("history", []), entry][-KEPT_HISTORY:]
    return merged


def _version(record: dict[str, Any], role: str) -> str | None:
    version = (record.get(role) or {}).get("version")
    return str(version) if version else None


def is_current(node: Node, part: dict[str, Any]) -> bool:
    """Whether the host's record says already what a role would write into it."""
    return merge(node.record, part, "") is None


@operation
def record(node: Node, role: str, part: Callable[[], dict[str, Any]]) -> Commands:
    """
    Write down what gpufleet installed on this host.

    + node: the host; its record is brought up to date
    + role: driver, toolkit or exporter
    + part: what the role learned, known at its end
    """
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    merged = merge(node.record, part(), now)
    if merged is None:
        host.noop("the record is up to date")
        return
    before = f"{HOME}/{role}.before"
    entry = merged[role]
    # asked for here, so that a run that was killed after its transaction is made up for by the next
    entry["added"] = sorted({*entry["added"], *host.get_fact(AddedPackages, before)})
    yield from put([FileWrite(PATH, json.dumps(merged, indent=2, sort_keys=True) + "\n")])
    yield command("rm", "-f", before, f"{before}.begun")
    node.record = merged
