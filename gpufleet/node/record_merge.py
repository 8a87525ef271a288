"""Merges the result of a role's run into the record on the host. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpufleet import __version__
from gpufleet.core.node_roles import NODE_ROLES
from gpufleet.facts.record import SCHEMA, HostRecord
from gpufleet.packages.transaction import with_added
from gpufleet.role.result import RoleResult

KEPT_HISTORY = 20  # entries


def merge_record(before: dict[str, Any], part: dict[str, Any], now: str) -> dict[str, Any] | None:
    """The record with a role's `part` and a history entry of the change, or None without a change.

    `part` has the role's entry and `files`, path -> sha256.
    """
    part = json.loads(json.dumps(part))  # lists and tuples are the same in the record
    new = {**part, "files": {**before.get("files", {}), **part.get("files", {})}}
    if all(before.get(key) == value for key, value in new.items()):
        return None
    head = {"schema": SCHEMA, "gpufleet": __version__, "time": now}
    merged = {**before, **head, **new}
    entry: dict[str, str | None] = {"time": now}
    for role, shown in NODE_ROLES.items():
        version = (merged.get(role) or {}).get("version")
        if version or shown == "always":
            entry[role] = str(version) if version else None
    merged["history"] = [*before.get("history", []), entry][-KEPT_HISTORY:]
    return merged


def with_added_packages(
    record: HostRecord, result: RoleResult, added: Sequence[str] = ()
) -> RoleResult:
    """The result with the packages that this run or earlier runs of the record added."""
    old = record.entry(type(result.entry))
    return replace(result, entry=with_added(result.entry, (*old.added, *added)))


def is_recorded(record: HostRecord, result: RoleResult) -> bool:
    """True if the record already contains the result."""
    return merge_record(record.as_json(), with_added_packages(record, result).as_json(), "") is None
