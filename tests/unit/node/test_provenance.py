"""The record on the host: written only when something changed, with its history."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyinfra.api import StringCommand

from gpufleet.node.operations import provenance
from gpufleet.node.operations.provenance import KEPT_HISTORY, combined, merge, parse

DRIVER: dict[str, Any] = {"version": "580.159.03", "packages": {"a": "1"}, "edits": ("x", "y")}


def part(version: str = "580.159.03") -> dict[str, Any]:
    return {"driver": {**DRIVER, "version": version}, "files": {"/etc/a": "1"}}


def test_the_first_record_has_a_head_and_a_history() -> None:
    record = merge({}, part(), "now")
    assert record is not None
    assert record["schema"] == 1
    assert record["history"] == [{"time": "now", "driver": "580.159.03", "toolkit": None}]


def test_the_same_again_is_no_change() -> None:
    record = merge({}, part(), "then")
    assert record
    assert merge(record, part(), "now") is None


def test_roles_do_not_take_each_others_parts_away() -> None:
    record = merge({}, part(), "then")
    assert record
    toolkit = {"toolkit": {"version": "1.20.1"}, "files": {"/etc/b": "2"}}
    both = merge(record, toolkit, "now")
    assert both is not None
    assert both["driver"]["version"] == "580.159.03"
    assert both["files"] == {"/etc/a": "1", "/etc/b": "2"}
    assert both["history"][-1] == {"time": "now", "driver": "580.159.03", "toolkit": "1.20.1"}


def test_an_exporter_is_in_the_history_once_there_is_one() -> None:
    record = merge(merge({}, part(), "then") or {}, {"exporter": {"version": "4.8.3.002"}}, "now")
    assert record is not None
    assert "exporter" not in record["history"][0]
    assert record["history"][1]["exporter"] == "4.8.3.002"


def test_the_history_does_not_grow_for_ever() -> None:
    record: dict[str, Any] = {}
    for number in range(KEPT_HISTORY + 5):
        record = merge(record, part(f"580.{number}.0"), str(number)) or {}
    assert len(record["history"]) == KEPT_HISTORY
    assert record["history"][-1]["driver"] == f"580.{KEPT_HISTORY + 4}.0"


class TestTwoControllers:
    """Both began from the same record; the other one has written meanwhile."""

    base: dict[str, Any] = merge({}, part(), "begin") or {}

    def ours(self, more: dict[str, Any]) -> dict[str, Any]:
        return merge(self.base, more, "ours") or {}

    def theirs(self, more: dict[str, Any]) -> dict[str, Any]:
        return merge(self.base, more, "theirs") or {}

    def test_another_role_of_theirs_stays(self) -> None:
        theirs = self.theirs({"exporter": {"version": "4.8"}, "files": {"/etc/b": "2"}})
        ours = self.ours({"toolkit": {"version": "1.20.1"}, "files": {"/etc/c": "3"}})
        both = combined(theirs, self.base, ours)
        assert (both["exporter"], both["toolkit"]) == (theirs["exporter"], ours["toolkit"])
        assert both["driver"] == self.base["driver"]
        assert both["files"] == {"/etc/a": "1", "/etc/b": "2", "/etc/c": "3"}
        assert [entry["time"] for entry in both["history"]] == ["begin", "theirs", "ours"]

    def test_so_does_another_runtime_of_the_same_role(self) -> None:
        def toolkit(runtime: str, added: list[str]) -> dict[str, Any]:
            return {"toolkit": {"version": "1", "runtimes": {runtime: {"x": 1}}, "added": added}}

        theirs, ours = self.theirs(toolkit("docker", ["a"])), self.ours(toolkit("crio", ["b"]))
        both = combined(theirs, self.base, ours)["toolkit"]
        assert both == {
            "version": "1",
            "runtimes": {"docker": {"x": 1}, "crio": {"x": 1}},
            "added": ["a", "b"],
        }

    def test_where_both_changed_the_same_it_is_ours(self) -> None:
        both = combined(self.theirs(part("590.1")), self.base, self.ours(part("585.1")))
        assert both["driver"]["version"] == "585.1"

    def test_what_we_took_away_goes(self) -> None:
        ours = self.ours({"driver": {"version": "585.1"}})
        both = combined(self.theirs({"exporter": {"version": "4"}}), self.base, ours)
        assert both["driver"] == {"version": "585.1"}

    def test_alone_ours_is_written_as_it_is(self) -> None:
        ours = self.ours(part("585.1"))
        assert combined({}, {}, ours) == ours
        assert combined(self.base, self.base, ours) == ours

    def test_so_it_is_where_the_record_was_removed_meanwhile(self) -> None:
        ours = self.ours({"toolkit": {"version": "1.20.1"}})
        assert combined({}, self.base, ours) == ours


def left_without_toolkit(
    record: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any] | None:
    """What is written once the toolkit's part and a file are dropped from the record; or None."""
    monkeypatch.setattr(provenance, "read", lambda *_: json.dumps(record).encode())
    monkeypatch.setattr(provenance, "host", SimpleNamespace(name="h"))
    commands = [cast(StringCommand, each) for each in provenance.drop("toolkit", ["/etc/b"])]
    sent = [lines for each in commands if (lines := each.connector_arguments.get("_stdin"))]
    return json.loads(base64.b64decode("".join(sent[0]))) if sent else None


def test_a_removed_role_leaves_the_rest_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    rest = merge({}, part(), "then") or {}
    toolkit = {"toolkit": {"version": "1.20.1"}, "files": {"/etc/b": "2"}}
    both = merge(rest, toolkit, "now") or {}
    left = left_without_toolkit(both, monkeypatch) or {}
    assert left == {**json.loads(json.dumps(rest)), "history": both["history"], "time": "now"}
    without_entry = {**both, "files": rest["files"]}
    assert left_without_toolkit(without_entry, monkeypatch) == left
    without_file = {**left, "files": both["files"]}
    assert left_without_toolkit(without_file, monkeypatch) == left
    assert left_without_toolkit(left, monkeypatch) is None


def test_a_record_that_is_none() -> None:
    assert [parse(content).as_json() for content in (b"", b"\n", b"{}")] == [{}, {}, {}]
    for content in (b"{", b"[]", b"\xff", b'{"schema": 2}', b'{"driver": {"version": 5}}'):
        with pytest.raises(ValueError, match=r"."):
            parse(content)
