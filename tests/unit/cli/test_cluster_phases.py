"""Phases of `gpufleet cluster`: when they stop, and one report about all of them."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click import UsageError

from gpufleet.cli.cluster import carry_out
from gpufleet.gpu_stack.findings import NO_GPU_NODES
from gpufleet.run import report_file
from gpufleet.run.cluster_phases import ClusterPhase, nodes_of

REPORT = """
import json, os, sys
hosts = {"gpu-1": {"errors": ["it broke"], "findings": [
    {"severity": "blocker", "code": "GF936", "message": "Swap is on"}]}}
with open(os.environ["GPUFLEET_REPORT"], "w") as file:
    json.dump({"hosts": hosts}, file)
sys.exit(STATUS)
"""
CHECKS = """
import sys
with open(sys.argv[sys.argv.index("--junit") + 1], "w") as file:
    file.write('<testsuites><testsuite name="checks"><testcase name="c"/></testsuite></testsuites>')
with open(sys.argv[sys.argv.index("--json") + 1], "w") as file:
    file.write('{"hosts": {}}')
"""


def phase(name: str, status: int = 0) -> ClusterPhase:
    return ClusterPhase(name, [sys.executable, "-c", REPORT.replace("STATUS", str(status))])


LAST = ClusterPhase("Checks", [sys.executable, "-c", CHECKS], checks=True)


def test_all_phases_in_one_report_and_one_junit_file(tmp_path: Path) -> None:
    report, junit = tmp_path / "r.json", tmp_path / "r.xml"
    assert carry_out([phase("Hosts"), LAST], str(report), str(junit)) == 0
    data = json.loads(report.read_text())
    assert [(each["name"], each["result"]) for each in data["phases"]] == [
        ("Hosts", "passed"), ("Checks", "passed"),
    ]  # fmt: skip
    assert data["phases"][0]["report"]["hosts"]["gpu-1"]["errors"] == ["it broke"]
    assert all(0 <= each["seconds"] < 600 for each in data["phases"])
    suites = ElementTree.parse(junit).getroot().findall("testsuite")
    assert [suite.get("name") for suite in suites] == ["gpufleet.cluster", "checks"]
    assert [case.get("name") for case in suites[0]] == ["Hosts", "Checks"]
    assert suites[0].get("failures") == suites[0].get("skipped") == "0"


@pytest.mark.parametrize("content", ["", "\n", '{"gpufleet": "0.1.0", "phases": []}'])
def test_a_report_replaces_an_earlier_one(content: str, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    report.write_text(content)
    assert carry_out([phase("Hosts")], str(report), None) == 0
    assert len(json.loads(report.read_text())["phases"]) == 1


@pytest.mark.parametrize("content", ["x", "[]", '{"phases": 1}'])
def test_a_file_of_others_stays_and_no_phase_runs(content: str, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    report.write_text(content)
    with pytest.raises(UsageError, match="is not a gpufleet report"):
        carry_out([ClusterPhase("Hosts", ["touch", str(tmp_path / "ran")])], str(report), None)
    assert (report.read_text(), [*tmp_path.iterdir()]) == (content, [report])


@pytest.mark.parametrize(
    ("code", "release", "status", "times"),
    [
        (NO_GPU_NODES.code, "node-feature-discovery", 0, 2),
        (NO_GPU_NODES.code, "node-feature-discovery", 1, 1),
        (NO_GPU_NODES.code, "nvidia-device-plugin", 0, 1),
        ("GF936", "node-feature-discovery", 0, 1),
    ],
)
def test_the_stack_is_applied_again_once_nodes_can_have_labels(
    code: str, release: str, status: int, times: int, tmp_path: Path
) -> None:
    log, report = tmp_path / "log", tmp_path / "r.json"
    text = REPORT.replace("STATUS", str(status)).replace("GF936", code)
    text = text.replace('"errors"', f'"releases": {{{release!r}: None}}, "errors"')
    words = [sys.executable, "-c", f"open({str(log)!r}, 'a').write('x')\n{text}"]
    assert carry_out([ClusterPhase("GPU stack", words, again=True)], str(report), None) == status
    assert log.read_text() == "x" * times
    phases = json.loads(report.read_text())["phases"]
    assert [each["name"] for each in phases] == ["GPU stack"] * times


def test_after_a_failure_the_rest_is_not_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, junit = tmp_path / "r.json", tmp_path / "r.xml"
    assert carry_out([phase("Hosts", 1), LAST], str(report), str(junit)) == 1
    results = [each["result"] for each in json.loads(report.read_text())["phases"]]
    assert results == ["failed", "not reached"]
    (suite,) = ElementTree.parse(junit).getroot()
    failed, later = suite
    failure = failed.find("failure")
    assert failure is not None
    assert "gpu-1: GF936 Swap is on" in (failure.text or "")
    assert "gpu-1: it broke" in (failure.text or "")
    assert later.find("skipped") is not None
    assert suite.get("failures") == suite.get("skipped") == "1"
    said = capsys.readouterr().err.splitlines()
    assert said == ["== Hosts", "Hosts: failed; nothing after it was started"]


@pytest.mark.parametrize(("status", "expected"), [(0, 0), (4, 4), (130, 130), (77, 1)])
def test_the_exit_status_is_one_of_gpufleets(status: int, expected: int) -> None:
    assert carry_out([phase("Hosts", status)], None, None) == expected


@pytest.mark.parametrize("lost", ["r.json", "r.xml"])
@pytest.mark.parametrize(("status", "expected"), [(0, 1), (130, 130)])
def test_a_report_that_cannot_be_written_costs_neither_status_nor_the_other(
    lost: str, status: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    kept = report_file.write_private

    def full(path: Path, text: str) -> bool:
        if path.name == lost:
            raise OSError(errno.ENOSPC, "No space left on device")
        return kept(path, text)

    monkeypatch.setattr(report_file, "write_private", full)
    files = [str(tmp_path / "r.json"), str(tmp_path / "r.xml")]
    assert carry_out([phase("Hosts", status)], *files) == expected
    assert {path.name for path in tmp_path.iterdir()} == {"r.json", "r.xml"} - {lost}
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "GF002" in line]
    assert f"{tmp_path / lost}: No space left on device" in said


def test_results_of_checks_that_were_cut_cost_no_report(tmp_path: Path) -> None:
    cut = ClusterPhase(
        "Checks", [sys.executable, "-c", CHECKS.replace("</testsuites>", "")], checks=True
    )
    report, junit = tmp_path / "r.json", tmp_path / "r.xml"
    assert carry_out([cut], str(report), str(junit)) == 0
    assert json.loads(report.read_text())["phases"][0]["name"] == "Checks"
    assert [suite.get("name") for suite in ElementTree.parse(junit).getroot()] == [
        "gpufleet.cluster"
    ]


def test_phases_go_on_where_nobody_reads_errors(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with pytest.MonkeyPatch.context() as patch, open(writer, "w", buffering=1) as stderr:
        patch.setattr(sys, "stderr", stderr)
        assert carry_out([phase("Hosts", 1)], str(tmp_path / "r.json"), None) == 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), writer)  # the rest is flushed on close
    assert (tmp_path / "r.json").is_file()


HOSTS = """
import json, os
hosts = {
    "node": {"status": "planned", "plan": {"kubernetes": True, "authorities": ["aa"]}},
    "begun": {"status": "changed", "plan": {"kubernetes": True}},
    "none": {"status": "converged", "plan": {"kubernetes": False}},
    "bare": {"status": "converged", "plan": {}},
    "stopped": {"status": "failed", "plan": {}},
    "away": {"status": "not reached", "plan": {}},
}
with open(os.environ["GPUFLEET_REPORT"], "w") as file:
    json.dump({"hosts": hosts}, file)
"""


@pytest.mark.parametrize(("program", "nodes"), [
    (HOSTS, ["node", "begun", "stopped", "away", "unnamed"]),
    ("", ["node", "begun", "none", "bare", "stopped", "away", "unnamed"]),
])  # fmt: skip
def test_a_host_that_was_not_read_may_be_a_node(program: str, nodes: list[str]) -> None:
    hosts = ["node", "begun", "none", "bare", "stopped", "away", "unnamed"]
    found = nodes_of([sys.executable, "-c", program], hosts)
    assert list(found) == nodes
    assert found["node"] == (frozenset(("aa",)) if program else frozenset())
