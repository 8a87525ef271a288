"""The record on the host: written only when something changed, with its history."""

from __future__ import annotations

from typing import Any

from gpufleet.operations.provenance import KEPT_HISTORY, merge

DRIVER: dict[str, Any] = {"version": "580.159.03", "packages": {"a": "1"}, "edits": ("x", "y")}


def part(version: str = "580.159.03") -> dict[str, Any]:
    return {"driver": {**DRIVER, "version": version}, "files": {"/etc/a": "1"}}


def test_the_first_record_has_a_head_and_a_history() -> None:
    record = merge(None, part(), "now")
    assert record is not None
    assert record["schema"] == 1
    assert record["history"] == [{"time": "now", "driver": "580.159.03", "toolkit": None}]


def test_the_same_again_is_no_change() -> None:
    record = merge(None, part(), "then")
    assert merge(record, part(), "now") is None


def test_roles_do_not_take_each_others_parts_away() -> None:
    record = merge(None, part(), "then")
    toolkit = {"toolkit": {"version": "1.20.1"}, "files": {"/etc/b": "2"}}
    both = merge(record, toolkit, "now")
    assert both is not None
    assert both["driver"]["version"] == "580.159.03"
    assert both["files"] == {"/etc/a": "1", "/etc/b": "2"}
    assert both["history"][-1] == {"time": "now", "driver": "580.159.03", "toolkit": "1.20.1"}


def test_an_exporter_is_in_the_history_once_there_is_one() -> None:
    record = merge(merge(None, part(), "then"), {"exporter": {"version": "4.8.3.002"}}, "now")
    assert record is not None
    assert "exporter" not in record["history"][0]
    assert record["history"][1]["exporter"] == "4.8.3.002"


def test_the_history_does_not_grow_for_ever() -> None:
    record: dict[str, Any] | None = None
    for number in range(KEPT_HISTORY + 5):
        record = merge(record, part(f"580.{number}.0"), str(number))
    assert record is not None
    assert len(record["history"]) == KEPT_HISTORY
    assert record["history"][-1]["driver"] == f"580.{KEPT_HISTORY + 4}.0"
