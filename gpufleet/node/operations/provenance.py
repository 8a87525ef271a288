"""The record on the host: installed versions, their sources, and the version of gpufleet."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import datetime, timezone
from typing import Any

from pyinfra import host

from gpufleet.facts.files import BACKUPS, HOME, INCOMING, NOTES, RECORD_PATH
from gpufleet.facts.record import HostRecord
from gpufleet.host.files import run_stamp
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.reading import read_fact
from gpufleet.host.shell import quote_command, script_command, upload_command
from gpufleet.node.operations.node import RunNode
from gpufleet.node.record_merge import is_recorded, merge_record, with_added_packages
from gpufleet.packages.operations.reading import AddedPackages
from gpufleet.role.result import RoleResult


def is_current(node: RunNode, result: RoleResult) -> bool:
    """True if the host's record already has the role's result. Adds the result to the report."""
    node.note(result)
    return is_recorded(node.record, result)


@host_operation
def record_role(
    node: RunNode, conclude: Callable[[], RoleResult], notes: Collection[str] = ()
) -> Commands:
    """
    Record the role's installation on this host.

    + node: the host; its record is updated
    + conclude: returns the role's results, which are known at its end
    + notes: runtimes with notes of planned changes, which are recorded now
    """
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    result = conclude()
    before = f"{HOME}/{result.entry.role}.before"
    # read here, so that this run also records packages of a run that was killed
    added = read_fact(AddedPackages, before)
    node.note(result)
    result = with_added_packages(node.facts.provenance, result, added)
    merged = merge_record(node.record.as_json(), result.as_json(), now)
    noted = [f"{NOTES}/{key}.json" for key in notes]
    if merged is None and not noted:
        host.noop("the record is up to date")
        return
    if merged is None:
        yield quote_command("rm", "-f", *noted)
        return
    yield from _put(merged)
    yield quote_command("rm", "-f", before, f"{before}.begun", f"{before}.ours", *noted)
    node.record = HostRecord.model_validate(merged)


def drop_record(record: HostRecord, role: str, paths: Collection[str]) -> Commands:
    """Remove a role and these files from the record, and remove the notes of its runs."""
    there = record.as_json()
    before = f"{HOME}/{role}.before"
    files = {path: digest for path, digest in there.get("files", {}).items() if path not in paths}
    if role in there or files != there.get("files", {}):
        yield from _put({**{k: v for k, v in there.items() if k != role}, "files": files})
    yield quote_command("rm", "-f", before, f"{before}.begun", f"{before}.ours")


def _put(record: dict[str, Any]) -> Commands:
    """Write the record. The host's lock keeps other runs from writing it."""
    staged = f"{INCOMING}/{run_stamp()}"
    text = json.dumps(record, indent=2, sort_keys=True) + "\n"
    yield quote_command("install", "-d", "-m", "700", HOME, INCOMING, BACKUPS)
    yield upload_command(text.encode(), staged)
    yield script_command("node/put_record", staged, RECORD_PATH)
