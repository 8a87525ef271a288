"""The record on the host: written only when something changed, with its history."""

from __future__ import annotations

import base64
import json
from typing import Any, cast

from pyinfra.api import StringCommand

from gpufleet.facts.record import read_record
from gpufleet.node.operations import provenance
from gpufleet.node.record_merge import KEPT_HISTORY, merge_record

DRIVER: dict[str, Any] = {"version": "580.159.03", "packages": {"a": "1"}, "edits": ("x", "y")}


def part(version: str = "580.159.03") -> dict[str, Any]:
    return {"driver": {**DRIVER, "version": version}, "files": {"/etc/a": "1"}}


def test_the_first_record_has_a_head_and_a_history() -> None:
    record = merge_record({}, part(), "now")
    assert record is not None
    assert record["schema"] == 1
    assert record["history"] == [{"time": "now", "driver": "580.159.03", "toolkit": None}]


def test_the_same_again_is_no_change() -> None:
    record = merge_record({}, part(), "then")
    assert record
    assert merge_record(record, part(), "now") is None


def test_roles_do_not_take_each_others_parts_away() -> None:
    record = merge_record({}, part(), "then")
    assert record
    toolkit = {"toolkit": {"version": "1.20.1"}, "files": {"/etc/b": "2"}}
    both = merge_record(record, toolkit, "now")
    assert both is not None
    assert both["driver"]["version"] == "580.159.03"
    assert both["files"] == {"/etc/a": "1", "/etc/b": "2"}
    assert both["history"][-1] == {"time": "now", "driver": "580.159.03", "toolkit": "1.20.1"}


def test_an_exporter_is_in_the_history_once_there_is_one() -> None:
    record = merge_record(
        merge_record({}, part(), "then") or {}, {"exporter": {"version": "4.8.3.002"}}, "now"
    )
    assert record is not None
    assert "exporter" not in record["history"][0]
    assert record["history"][1]["exporter"] == "4.8.3.002"


def test_the_history_does_not_grow_for_ever() -> None:
    record: dict[str, Any] = {}
    for number in range(KEPT_HISTORY + 5):
        record = merge_record(record, part(f"580.{number}.0"), str(number)) or {}
    assert len(record["history"]) == KEPT_HISTORY
    assert record["history"][-1]["driver"] == f"580.{KEPT_HISTORY + 4}.0"


def left_without_toolkit(record: dict[str, Any]) -> dict[str, Any] | None:
    """The record without the toolkit's part and the file /etc/b, or None if it is not written."""
    dropped = provenance.drop_record(read_record(json.dumps(record)), "toolkit", ["/etc/b"])
    commands = [cast(StringCommand, each) for each in dropped]
    sent = [lines for each in commands if (lines := each.connector_arguments.get("_stdin"))]
    return json.loads(base64.b64decode("".join(sent[0]))) if sent else None


def test_a_removed_role_leaves_the_rest_of_the_record() -> None:
    rest = merge_record({}, part(), "then") or {}
    toolkit = {"toolkit": {"version": "1.20.1"}, "files": {"/etc/b": "2"}}
    both = merge_record(rest, toolkit, "now") or {}
    left = left_without_toolkit(both) or {}
    assert left == {**json.loads(json.dumps(rest)), "history": both["history"], "time": "now"}
    without_entry = {**both, "files": rest["files"]}
    assert left_without_toolkit(without_entry) == left
    without_file = {**left, "files": both["files"]}
    assert left_without_toolkit(without_file) == left
    assert left_without_toolkit(left) is None
