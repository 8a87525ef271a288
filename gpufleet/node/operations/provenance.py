"""The record on the host: what was installed, from where, by which version of gpufleet."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from pyinfra import host

from gpufleet import __version__
from gpufleet.core.node_roles import NODE_ROLES
from gpufleet.facts.files import BACKUPS, HOME, INCOMING, NOTES
from gpufleet.facts.record import SCHEMA, HostRecord
from gpufleet.host.files import stamp
from gpufleet.host.operation import Commands, operation
from gpufleet.host.reading import read
from gpufleet.host.shell import command, script, upload
from gpufleet.node.operations.node import Node
from gpufleet.packages.operations.reading import AddedPackages
from gpufleet.packages.transaction import with_added
from gpufleet.role.result import RoleResult

PATH = f"{HOME}/provenance.json"
KEPT_HISTORY = 20  # entries


def merge(before: dict[str, Any], part: dict[str, Any], now: str) -> dict[str, Any] | None:
    """The record with a role's `part` and a history entry of the change; None for no change.

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
        version = _version(merged, role)
        if version or shown == "always":
            entry[role] = version
    merged["history"] = [*before.get("history", []), entry][-KEPT_HISTORY:]
    return merged


def _version(record: dict[str, Any], role: str) -> str | None:
    version = (record.get(role) or {}).get("version")
    return str(version) if version else None


def is_current(node: Node, result: RoleResult) -> bool:
    """Whether the host's record already has what a role would write; adds it to the report."""
    result = _with_added(node, result)
    return merge(node.record.as_json(), result.as_json(), "") is None


def _with_added(node: Node, result: RoleResult, added: Sequence[str] = ()) -> RoleResult:
    """The result with the packages that this run and earlier ones added; it goes to the report."""
    node.note(result)
    old = node.facts.provenance.entry(type(result.entry))
    return replace(result, entry=with_added(result.entry, (*old.added, *added)))


@operation
def record(node: Node, conclude: Callable[[], RoleResult], notes: Collection[str] = ()) -> Commands:
    """
    Record what gpufleet installed on this host.

    + node: the host; its record is updated
    + conclude: returns the role's results, known at its end
    + notes: runtimes with notes of planned changes, which are recorded now
    """
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    result = conclude()
    before = f"{HOME}/{result.entry.role}.before"
    # called here, so that the next run makes up for one that was killed after its transaction
    added = read(AddedPackages, before)
    result = _with_added(node, result, added)
    merged = merge(node.record.as_json(), result.as_json(), now)
    noted = [f"{NOTES}/{key}.json" for key in notes]
    if merged is None and not noted:
        host.noop("the record is up to date")
        return
    if merged is None:
        yield command("rm", "-f", *noted)
        return
    yield from _put(merged)
    yield command("rm", "-f", before, f"{before}.begun", f"{before}.ours", *noted)
    node.record = HostRecord.model_validate(merged)


def drop(record: HostRecord, role: str, paths: Collection[str]) -> Commands:
    """Take a role and these files out of the record, and remove the notes of its runs."""
    there = record.as_json()
    before = f"{HOME}/{role}.before"
    files = {path: digest for path, digest in there.get("files", {}).items() if path not in paths}
    if role in there or files != there.get("files", {}):
        yield from _put({**{k: v for k, v in there.items() if k != role}, "files": files})
    yield command("rm", "-f", before, f"{before}.begun", f"{before}.ours")


def _put(record: dict[str, Any]) -> Commands:
    """Write the record. The lock on the host keeps other runs from it."""
    staged = f"{INCOMING}/{stamp()}"
    text = json.dumps(record, indent=2, sort_keys=True) + "\n"
    yield command("install", "-d", "-m", "700", HOME, INCOMING, BACKUPS)
    yield upload(text.encode(), staged)
    yield script("node/put_record", staged, PATH)
