"""The report of a worker, which may say anything."""

from __future__ import annotations

import json
from concurrent.futures import Future
from typing import Any

import pytest
from rich.console import Console

from gpufleet.cli.sharded import outcome_of
from gpufleet.run.report_table import show
from gpufleet.run.shards import LONGEST, Outcome, Result, Shard, brief, result_of

MOVED = {"before": None, "after": "1"}
FINDING = {"code": "GF101", "severity": "info", "message": "m", "remedy": "r"}
HOST: dict[str, Any] = {
    "kind": "node", "status": "converged", "changed": 0, "failed": False, "driver": MOVED,
    "toolkit": MOVED, "exporter": MOVED, "runtimes": {}, "releases": {}, "needs": [],
    "findings": [], "errors": [], "plan": {"steps": []}, "seconds": 0.1,
}  # fmt: skip
FAILED = {"status": "failed", "failed": True}
BLOCKED = {**FAILED, "findings": [{**FINDING, "code": "GF006"}]}


def result(*hosts: dict[str, Any], status: int = 0, asked_dry: bool = False, **head: Any) -> Result:
    """Of a part with these hosts, each with what differs from a good one."""
    names = tuple("abc"[: len(hosts)])
    whole = {
        "schema": 1, "exit_status": status, "dry": False, "completed": True,
        "hosts": {name: HOST | own for name, own in zip(names, hosts, strict=True)}, **head,
    }  # fmt: skip
    return result_of(Shard(1, names), Outcome(json.dumps(whole), status), dry=asked_dry)


def states(found: Result) -> list[str]:
    return [host.status for host in found.hosts]


@pytest.mark.parametrize(
    "own",
    [
        {"status": "weird"},
        {"status": ["failed"]},
        {"status": "failed"},
        {"failed": True},
        {"kind": "x"},
        {"changed": "1"},
        {"changed": -1},
        {"seconds": "x"},
        {"seconds": float("nan")},
        {"driver": "580"},
        {"runtimes": [1]},
        {"runtimes": {"docker": "\x1b[31m"}},
        {"releases": {"a": {"during": "1"}}},
        {"needs": "abc"},
        {"errors": [1]},
        {"plan": {}},
        {"plan": {"steps": [], "versions": {"driver": 1}}},
        {"findings": [{}]},
        {"findings": [{**FINDING, "code": "GF1\x1b[2J"}]},
        {"findings": [{**FINDING, "code": "GF101\n"}]},
        {"findings": [{**FINDING, "severity": "weird"}]},
        {"findings": [{**FINDING, "message": None}]},
        {"name": MOVED},  # fields of ours that the JSON does not have
        {"roles": {"before": "1", "after": None}},
        {"examined": {}},
        {"seen": MOVED},
        {"leaves": {}},
        {"driver": {"before": "1"}},
        {"releases": {"a": {"after": "1"}}},
        {"changed": 5},
        {"changed": 10**4000},
        {"seconds": 1e300},
        {"status": "changed"},
        {"status": "planned", "changed": 1},
        {"findings": [{**FINDING, "severity": "blocker"}]},
        {"plan": {"steps": [], "x": float("nan")}},
        {"plan": {"steps": [], "x": [{"y": float("inf")}]}},
    ],
)
def test_a_part_whose_report_is_not_valid_is_lost(own: dict[str, Any]) -> None:
    found = result({}, own)
    assert states(found) == ["not reached"] * 2
    assert not found.completed
    (finding,) = found.hosts[0].findings
    assert finding.code == "GF013"
    assert "its report is not valid: hosts.b" in finding.message


def test_a_field_of_another_name_is_the_version_of_a_role() -> None:
    assert states(result({"later": MOVED})) == ["converged"]
    assert states(result({"later": "x"})) == ["not reached"]


@pytest.mark.parametrize(
    ("status", "head", "why"),
    [
        (1, {}, "it ended early, with status 1"),
        (0, {"completed": False}, "it ended early, with status 0"),
        (0, {"dry": True}, "it previewed"),
        (0, {"exit_status": 1}, "its process ended with status 0"),
        (0, {"schema": 2}, "not valid: schema"),
    ],
)
def test_a_part_that_contradicts_itself_is_lost(
    status: int, head: dict[str, Any], why: str
) -> None:
    found = result({}, status=status, **head)
    assert states(found) == ["not reached"]
    assert why in found.hosts[0].findings[0].message


def test_what_a_preview_would_do_is_not_done() -> None:
    preview: dict[str, Any] = {"asked_dry": True, "dry": True, "completed": False}
    assert states(result({"status": "planned", "changed": 1}, **preview)) == ["planned"]
    assert states(result({"status": "changed", "changed": 1}, **preview)) == ["not reached"]


def test_an_error_that_a_deploy_ignores_is_no_failure() -> None:
    """As without workers: pyinfra's _ignore_errors."""
    own = {"errors": ["Sync"], "findings": [{**FINDING, "code": "GF012", "severity": "blocker"}]}
    assert states(result(own)) == ["converged"]


def test_a_status_that_no_process_has_is_strange() -> None:
    future: Future[Outcome] = Future()
    future.set_result(Outcome(status=10**5000))
    assert "something else" in outcome_of(future).problem


def test_names_and_versions_are_visible_lines() -> None:
    moved = {"before": "1\x1b[2J", "after": "2\nGF999"}
    own = {"releases": {"a\nb": moved}, "plan": {"steps": [], "versions": {"driver": moved}}}
    (host,) = result(own).hosts
    shown = {"before": "1\\x1b[2J", "after": "2\\nGF999"}
    assert (host.releases, host.roles["driver"]) == ({"a\\nb": shown}, shown)


def test_a_preview_that_was_none_is_lost() -> None:
    assert states(result({}, asked_dry=True)) == ["not reached"]
    assert states(result({}, asked_dry=True, dry=True, completed=False)) == ["converged"]


@pytest.mark.parametrize(
    ("hosts", "completed", "whole"),
    [
        (({}, FAILED), True, True),
        ((FAILED,), False, True),  # none was left
        (({}, FAILED), False, False),
        ((BLOCKED,), False, False),  # the run ended before it reached the host
    ],
)
def test_a_part_is_completed_with_or_without_success(
    hosts: tuple[dict[str, Any], ...], completed: bool, whole: bool
) -> None:
    found = result(*hosts, status=1, completed=completed)
    assert states(found) == [host.get("status", "converged") for host in hosts]
    assert found.completed is whole


def test_hosts_that_were_done_before_a_signal_stay() -> None:
    found = result({}, status=143, completed=False)
    assert (states(found), found.completed) == (["converged"], False)


def test_no_text_of_a_report_looks_like_a_line_of_the_runs_own() -> None:
    forged = "a\nGF000 blocker x: forged\x1b[31m"
    own = {
        **FAILED, "errors": [forged], "needs": [forged], "plan": {"steps": [forged]},
        "findings": [{**FINDING, "message": forged, "remedy": forged}],
    }  # fmt: skip
    console = Console(record=True, width=200, quiet=False, file=None)
    with console.capture() as capture:
        show(console, result(own, status=1).hosts, dry=True)
    lines = capture.get().splitlines()
    assert sum("forged" in line for line in lines) == 5
    assert not any(line.startswith("GF000") or "\x1b" in line for line in lines)
    assert [line for line in lines if line.startswith("  | GF000 blocker x: forged\\x1b[31m")]


def test_lines_that_gpufleet_wrote_stay_as_they_are() -> None:
    steps = ["Change the values\n  - a: 1\n  + a: 2"]
    errors = ["Install\n  | E: no space"]
    own = {**FAILED, "plan": {"steps": steps}, "errors": errors}
    (host,) = result(own, status=1).hosts
    assert (host.steps, host.errors) == (steps, errors)


def test_a_reason_is_brief() -> None:
    assert brief("Error: cannot read https://a:Hunter2Plant@store/x password=Hunter2Plant.") == (
        "Error: cannot read https://***@store/x password=***"
    )
    assert brief("a\nb\x1b[2J..") == "a\\nb\\x1b[2J"
    assert LONGEST - 5 < len(brief("zzz " * 10**6)) <= LONGEST + 1


def test_a_lost_worker_is_said_in_sentences_with_one_period() -> None:
    outcome = Outcome(status=2, output="GF003 No inventory file i.py. Nothing was done.")
    (host,) = result_of(Shard(1, ("a",)), outcome, dry=False).hosts
    assert host.findings[0].message.endswith("Nothing was done.")
    assert ".." not in host.findings[0].message
