"""The record on the host: what was installed, from where, by which version of gpufleet."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from pyinfra import host
from pyinfra.api import FactBase, StringCommand

from gpufleet import __version__
from gpufleet.core.node_roles import NODE_ROLES
from gpufleet.facts.files import BACKUPS, HOME, INCOMING, NOTES
from gpufleet.facts.record import NO_RECORD, SCHEMA, HostRecord, read_record
from gpufleet.host.asking import answer, framed
from gpufleet.host.files import stamp
from gpufleet.host.operation import Commands, operation
from gpufleet.host.reading import read
from gpufleet.host.shell import command, explain, script, stop, upload
from gpufleet.node import findings as found
from gpufleet.node.operations.node import Node
from gpufleet.packages.operations.reading import AddedPackages
from gpufleet.packages.transaction import with_added
from gpufleet.role.listing import node_roles
from gpufleet.role.result import RoleResult

PATH = f"{HOME}/provenance.json"
KEPT_HISTORY = 20  # entries


class RecordOnHost(FactBase[bytes]):
    """The bytes of the host's current record; empty if there is none."""

    @staticmethod
    def default() -> bytes:
        return b""

    def command(self, path: str) -> StringCommand:
        return framed(script("node/read_record", path))

    def process(self, output: Iterable[str]) -> bytes:
        return base64.b64decode("".join(answer(output) or ()))


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


def onto(theirs: Any, base: Any, ours: Any) -> Any:
    """Apply our changes of `base` to `theirs`: what another run has written since stays.

    Tables are merged key by key; if both changed the same value, ours wins. None: no value.
    """
    if ours == base or theirs == ours:
        return theirs
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return ours
    before = base if isinstance(base, dict) else {}
    keys = [*theirs, *(key for key in ours if key not in theirs)]
    made = {key: onto(theirs.get(key), before.get(key), ours.get(key)) for key in keys}
    return {key: value for key, value in made.items() if key in ours or value is not None}


def combined(theirs: dict[str, Any], base: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """The record to write: the host has `theirs`, we started from `base` and want `ours`."""
    if not theirs or theirs == base:
        return ours
    record: dict[str, Any] = onto(theirs, base, ours)
    entry = ours["history"][-1]
    record["history"] = [*theirs.get("history", []), entry][-KEPT_HISTORY:]
    for role, part in record.items():
        there = theirs.get(role)
        if isinstance(part, dict) and isinstance(there, dict) and "added" in part:
            part["added"] = sorted({*part["added"], *there.get("added", ())})
    return record


def parse(content: bytes) -> HostRecord:
    """The record from a file's bytes; an empty one if there are none. Raises ValueError."""
    record = read_record(content) if content.strip() else NO_RECORD
    if problem := record.trouble(role.entry for role in node_roles()):
        raise ValueError(problem)
    return record


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
    known = node.record.as_json()
    merged = merge(known, result.as_json(), now)
    noted = [f"{NOTES}/{key}.json" for key in notes]
    if merged is None and not noted:
        host.noop("the record is up to date")
        return
    if merged is None:
        yield command("rm", "-f", *noted)
        return
    content = read(RecordOnHost, PATH)  # the facts are older than this run's changes
    try:
        merged = combined(parse(content).as_json(), known, merged)
    except ValueError:
        yield stop(host.name, found.RECORD_MOVED(file=PATH))
        return
    yield from _put(merged, content)
    yield command("rm", "-f", before, f"{before}.begun", f"{before}.ours", *noted)
    node.record = HostRecord.model_validate(merged)


def drop(role: str, paths: Collection[str]) -> Commands:
    """Take a role and these files out of the record, and remove the notes of its runs. What
    another run has written since stays."""
    content = read(RecordOnHost, PATH)
    before = f"{HOME}/{role}.before"
    try:
        there = parse(content).as_json()
    except ValueError:
        yield stop(host.name, found.RECORD_MOVED(file=PATH))
        return
    files = {path: digest for path, digest in there.get("files", {}).items() if path not in paths}
    if role in there or files != there.get("files", {}):
        yield from _put({**{k: v for k, v in there.items() if k != role}, "files": files}, content)
    yield command("rm", "-f", before, f"{before}.begun", f"{before}.ours")


def _put(record: dict[str, Any], content: bytes) -> Commands:
    """Write the record whose bytes were `content`; it fails where it has others by now."""
    staged = f"{INCOMING}/{stamp()}"
    text = json.dumps(record, indent=2, sort_keys=True) + "\n"
    yield command("install", "-d", "-m", "700", HOME, INCOMING, BACKUPS)
    yield upload(text.encode(), staged)
    digest = hashlib.sha256(content).hexdigest() if content else ""
    message = explain(host.name, found.RECORD_MOVED(file=PATH))
    yield script("node/put_record", staged, PATH, digest, message)
