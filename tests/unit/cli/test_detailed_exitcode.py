"""`--detailed-exitcode` of plan and apply: 0 without changes, 2 with changes, 1 after an error."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpufleet.cli import deploy, main, parts, preview
from gpufleet.cli.parts import PartsRequest
from gpufleet.core.exit_status import ExitStatus
from gpufleet.verify.inventory import Target

HOST, CLUSTER = Target("gpu-1", ("gpu_nodes",), {}), Target("@local", ("gpu_cluster",), {})


@pytest.fixture(autouse=True)
def inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: [HOST, CLUSTER])


def planned(monkeypatch: pytest.MonkeyPatch, status: int, steps: dict[str, list[str]]) -> None:
    """pyinfra's preview ends with `status`, and its report has these steps."""

    def runs(words: list[str], environment: dict[str, str], output: object = None) -> int:
        hosts = {
            name: {"plan": {"steps": each}, "changed": len(each)} for name, each in steps.items()
        }
        Path(environment["GPUFLEET_REPORT"]).write_text(json.dumps({"hosts": hosts}))
        return status

    monkeypatch.setattr(preview, "run_in_front", runs)


@pytest.mark.parametrize(
    ("status", "steps", "code"),
    [
        (0, {"gpu-1": [], "@local": []}, 0),
        (0, {"gpu-1": ["driver: load"], "@local": []}, 2),
        (0, {"gpu-1": [], "@local": ["install release dcgm-exporter"]}, 2),
        (1, {"gpu-1": ["driver: load"], "@local": []}, 1),
        (2, {}, 1),
        (4, {}, 4),
        (130, {"gpu-1": ["driver: load"]}, 130),
    ],
)
def test_the_status_says_whether_apply_has_changes(
    monkeypatch: pytest.MonkeyPatch, status: int, steps: dict[str, list[str]], code: int
) -> None:
    planned(monkeypatch, status, steps)
    assert CliRunner().invoke(main, ["plan", "inv.py", "--detailed-exitcode"]).exit_code == code


@pytest.mark.parametrize(
    ("status", "changed", "code"), [(0, 0, 0), (0, 3, 2), (1, 3, 1), (1, 0, 1), (143, 3, 143)]
)
def test_the_status_says_whether_apply_changed_anything(
    monkeypatch: pytest.MonkeyPatch, status: int, changed: int, code: int
) -> None:
    """What a deploy of the user changed counts, too: it is no step of the plan."""
    ran: list[list[str]] = []

    def runs(words: list[str], environment: dict[str, str], output: object = None) -> int:
        ran.append(words)
        hosts = {"gpu-1": {"plan": {"steps": []}, "changed": changed}}
        Path(environment["GPUFLEET_REPORT"]).write_text(json.dumps({"hosts": hosts}))
        return status

    monkeypatch.setattr(os, "execv", lambda *words: pytest.fail("the status was not judged"))
    monkeypatch.setattr(preview, "run_in_front", runs)
    done = CliRunner().invoke(main, ["apply", "inv.py", "--yes", "--detailed-exitcode"])
    assert (done.exit_code, len(ran)) == (code, 1), done.output
    assert Path(ran[0][-2]).name == "gpu_node.py"


def test_a_plan_without_a_report_is_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "run_in_front", lambda words, environment, output: 0)
    assert CliRunner().invoke(main, ["plan", "inv.py", "--detailed-exitcode"]).exit_code == 1


@pytest.mark.parametrize("words", [["--nonsense"], ["--limit", "*", "--", "--nonsense"]])
def test_wrong_usage_is_no_change(words: list[str]) -> None:
    assert CliRunner().invoke(main, ["plan", "inv.py", *words]).exit_code == 2
    detailed = ["plan", "inv.py", "--detailed-exitcode", *words]
    assert CliRunner().invoke(main, detailed).exit_code == 1


def test_an_inventory_that_is_not_there_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    detailed = ["plan", "nosuch.py", "--detailed-exitcode"]
    found = CliRunner().invoke(main, detailed)
    assert (found.exit_code, "GF701" in found.stderr) == (1, True)


def test_the_report_that_was_asked_for_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    planned(monkeypatch, 0, {"gpu-1": ["driver: load"]})
    report = tmp_path / "plan.json"
    monkeypatch.setitem(os.environ, "GPUFLEET_REPORT", str(report))
    assert CliRunner().invoke(main, ["plan", "inv.py", "--detailed-exitcode"]).exit_code == 2
    assert "driver: load" in report.read_text()


@pytest.mark.parametrize("command", [["plan"], ["apply", "--yes"]])
@pytest.mark.parametrize(("changes", "code"), [(0, 0), (3, 2)])
def test_a_run_in_parts_has_the_same_statuses(
    monkeypatch: pytest.MonkeyPatch, changes: int, code: int, command: list[str]
) -> None:
    asked: list[PartsRequest] = []

    def runs(request: PartsRequest, *words: object, **how: object) -> tuple[ExitStatus, int]:
        asked.append(request)
        return ExitStatus.CONVERGED, changes

    monkeypatch.setattr(parts, "_run", runs)
    words = [*command, "inv.py", "--workers", "2", "--detailed-exitcode"]
    assert (CliRunner().invoke(main, words).exit_code, len(asked)) == (code, 1)
