"""`plan --out FILE` and `apply --plan FILE`: a run that does what was planned, or nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

import gpufleet.run
from gpufleet.cli import deploy, main, preview
from gpufleet.run.plan_contract import contract_of_host
from gpufleet.verify.inventory import Target

SCHEMA = json.loads((Path(gpufleet.run.__file__).parent / "plan.schema.json").read_text())
STEPS = ["driver: install the driver: 580.1", "hold"]
NODE = {
    "status": "planned",
    "plan": {
        "steps": STEPS,
        "versions": {"driver": {"before": None, "after": "580.1"}},
        "digests": {"/etc/a": "aa"},
        "impact": {"restarts": {"docker.service": 3}, "sources": {}, "files": ["/etc/a"],
                   "reboot": "none", "unloads_driver": False, "gpu_pods": 1},
    },
}  # fmt: skip
LAB = {"status": "converged", "plan": {"steps": [], "releases": [{"name": "x", "action": "no-op"}]}}


def node(**plan: Any) -> dict[str, Any]:
    return NODE | {"plan": NODE["plan"] | plan}  # type: ignore[operator]


UNVERSIONED = node()
UNVERSIONED["plan"].pop("versions")


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The hosts in the report of the next preview. A test may change them."""
    now: dict[str, dict[str, Any]] = {"gpu-1": node(), "lab": LAB}

    def runs(words: list[str], environment: dict[str, str], output: Any = None) -> int:
        report = {"hosts": now}
        Path(environment["GPUFLEET_REPORT"]).write_text(json.dumps(report))
        return 0

    monkeypatch.setattr(preview, "run_in_front", runs)
    monkeypatch.setattr(deploy, "load_targets", lambda inventory: [Target("gpu-1", (), {})])
    return now


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    found: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: found.append([*words]))
    return found


def call(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(main, words)


@pytest.fixture
def file(tmp_path: Path, plans: dict[str, dict[str, Any]]) -> Path:
    """A plan file of the hosts in `plans`."""
    path = tmp_path / "fleet.plan"
    assert call("plan", "inv.py", "--out", str(path)).exit_code == 0
    return path


def test_a_plan_is_private_and_as_its_schema_says(file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    found = json.loads(file.read_text())
    jsonschema.validate(found, SCHEMA)
    assert (found["inventory"], list(found["hosts"])) == ("inv.py", ["gpu-1", "lab"])
    assert found["hosts"]["gpu-1"]["versions"]["driver"]["after"] == "580.1"


def test_a_checked_plan_is_checked_again_before_it_is_applied(
    tmp_path: Path, became: list[list[str]], monkeypatch: pytest.MonkeyPatch,
    plans: dict[str, dict[str, Any]],
) -> None:  # fmt: skip
    path, previews = str(tmp_path / "fleet.plan"), []
    run = preview.run_in_front

    def runs(words: list[str], environment: dict[str, str], output: Any = None) -> int:
        previews.append(Path(words[-1]).name)
        return run(words, environment, output)

    monkeypatch.setattr(preview, "run_in_front", runs)
    assert call("plan", "inv.py", "--check", "--out", path).exit_code == 0
    assert call("apply", "inv.py", "--plan", path).exit_code == 0
    assert previews == ["check.py", "check.py"]
    assert Path(became[0][-1]).name == "gpu_node.py"


def test_a_part_of_a_plan_is_applied_by_limit(
    file: Path, plans: dict[str, dict[str, Any]], became: list[list[str]]
) -> None:
    """A user may start with a canary after the whole plan was approved."""
    plans.pop("lab")
    assert call("apply", "inv.py", "--plan", str(file)).exit_code == 1, "lab is gone"
    done = call("apply", "inv.py", "--plan", str(file), "--limit", "gpu-1")
    assert (done.exit_code, len(became)) == (0, 1), done.output
    plans["gpu-1"] = node(steps=["driver: install the driver: 581.0"])
    assert call("apply", "inv.py", "--plan", str(file), "--limit", "gpu-1").exit_code == 1


def test_a_refused_run_leaves_no_older_report(
    file: Path,
    plans: dict[str, dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, strange = tmp_path / "old.json", tmp_path / "strange.json"
    old.write_text('{"gpufleet": "0.1.0"}')
    strange.write_text("notes")
    plans.pop("lab")
    monkeypatch.setenv("GPUFLEET_REPORT", str(old))
    assert call("apply", "inv.py", "--plan", str(file)).exit_code == 1
    assert not old.exists()
    monkeypatch.setenv("GPUFLEET_REPORT", str(strange))
    assert call("apply", "inv.py", "--plan", str(file)).exit_code == 2
    assert strange.read_text() == "notes"


@pytest.mark.parametrize("limit", [(), ("--limit", "gpu-1")])
def test_a_comparison_that_was_interrupted_approves_nothing(
    file: Path, became: list[list[str]], monkeypatch: pytest.MonkeyPatch, limit: tuple[str, ...]
) -> None:
    """Ctrl-C ends the preview before its report; with --limit no host of the plan was left then."""
    monkeypatch.setattr(preview, "run_in_front", lambda *words: 0)
    done = call("apply", "inv.py", "--plan", str(file), *limit)
    assert (done.exit_code, became) == (1, [])
    assert "0 changed" in done.output


def test_parts_are_not_checked() -> None:
    done = call("plan", "inv.py", "--check", "--workers", "2")
    assert (done.exit_code, "--check" in done.output) == (2, True)


def test_the_same_plan_is_applied_without_a_question(file: Path, became: list[list[str]]) -> None:
    done = call("apply", "inv.py", "--plan", str(file))
    assert (done.exit_code, len(became)) == (0, 1), done.output
    assert Path(became[0][-1]).name == "gpu_node.py"


def test_how_busy_a_host_is_may_change(
    file: Path, became: list[list[str]], plans: dict[str, dict[str, Any]]
) -> None:
    impact = NODE["plan"]["impact"] | {"restarts": {"docker.service": 9}, "gpu_pods": 0}  # type: ignore[index]
    plans["gpu-1"] = node(impact=impact)
    assert (call("apply", "inv.py", "--plan", str(file)).exit_code, len(became)) == (0, 1)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (node(steps=["driver: 580.2"]), "the driver: 580.1; hold; now: driver: 580.2. Nothing"),
        (node(steps=list("abcde")), "now: a; b; c; and 2 more. Nothing"),
        (node(digests={"/etc/a": "bb"}), "the same steps with other digests"),
        (node(versions={}), "the same steps with other versions"),
        (UNVERSIONED, "now: the same steps with other versions. Nothing"),
        (node(steps=STEPS[:1], versions={}), "planned: hold; now: no such step. Nothing"),
        (node(steps=[]), "planned: driver: install the driver: 580.1; hold; now: no such step. "),
        (node(steps=STEPS[::-1]), "now: the same steps in another order"),
        ({"status": "failed", "plan": {"steps": []}}, "now: failed"),
        (None, "now: not in the plan"),
    ],
)  # fmt: skip
def test_a_host_whose_plan_differs_stops_all(
    file: Path,
    became: list[list[str]],
    plans: dict[str, dict[str, Any]],
    now: dict[str, Any] | None,
    said: str,
) -> None:
    plans.pop("gpu-1")
    plans |= {"gpu-1": now} if now else {}
    done = call("apply", "inv.py", "--plan", str(file))
    assert (done.exit_code, became) == (1, [])
    assert ("GF019 blocker gpu-1: " in done.stdout, said in done.stdout) == (True, True), (
        done.stdout
    )
    assert "lab" not in done.stdout


def test_a_new_host_is_not_in_the_plan(
    file: Path, became: list[list[str]], plans: dict[str, dict[str, Any]]
) -> None:
    plans["gpu-2"] = node()
    done = call("apply", "inv.py", "--plan", str(file), "--yes")
    assert (done.exit_code, became) == (1, [])
    assert "GF019 blocker gpu-2: planned: not in the plan; now: driver: install" in done.stdout


def test_the_last_line_of_a_refused_run_says_so(
    file: Path, became: list[list[str]], plans: dict[str, dict[str, Any]]
) -> None:
    """The plan of now ends with `1 to change ... 0 blocked`, and nothing is changed."""
    plans |= {"gpu-2": node(), "gpu-3": node()}
    done = call("apply", "inv.py", "--plan", str(file))
    last = done.stdout.rstrip().splitlines()[-1]
    assert last == "Refused: the plan differs on 2 of 4 hosts; 0 changed"


def test_plans_that_differ_in_several_ways_have_one_remedy(
    file: Path, became: list[list[str]], plans: dict[str, dict[str, Any]]
) -> None:
    plans |= {f"gpu-{n}": node(steps=[f"driver: 580.{n}"]) for n in range(2, 30)}
    done = call("apply", "inv.py", "--plan", str(file))
    assert done.stdout.count("GF019 blocker") == 28
    assert done.stdout.count("gpufleet plan INVENTORY --out FILE") == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"gpufleet_plan": 2, "hosts": {}}', "secret"])
def test_another_file_is_no_plan(tmp_path: Path, became: list[list[str]], text: str) -> None:
    other = tmp_path / "other"
    other.write_text(text)
    done = call("apply", "inv.py", "--plan", str(other))
    assert (done.exit_code, became) == (2, [])
    assert "is no plan of this gpufleet" in done.stderr
    assert not text or text not in done.stderr or text == "{}"


def test_no_other_file_is_replaced(tmp_path: Path) -> None:
    other = tmp_path / "inventory.py"
    other.write_text("gpu_nodes = []\n")
    done = call("plan", "inv.py", "--out", str(other))
    assert (done.exit_code, other.read_text()) == (2, "gpu_nodes = []\n")


def test_a_plan_that_could_not_be_made_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plans: dict[str, dict[str, Any]]
) -> None:
    monkeypatch.setattr(preview, "run_in_front", lambda words, environment, output: 130)
    path = tmp_path / "fleet.plan"
    assert call("plan", "inv.py", "--out", str(path)).exit_code == 130
    assert not path.exists()


@pytest.mark.parametrize("words", [["plan", "--out"], ["apply", "--yes", "--plan"]])
def test_parts_have_no_plan_file(file: Path, words: list[str]) -> None:
    done = call(words[0], "inv.py", *words[1:], str(file), "--workers", "2")
    assert (done.exit_code, "is not possible with --workers" in done.stderr) == (2, True)


def test_nothing_of_the_host_but_its_plan_is_kept() -> None:
    host = NODE | {"needs": ["x"], "findings": [], "seconds": 3.0}
    assert set(contract_of_host(host)) == {
        "status", "steps", "versions", "digests", "sources", "files", "reboot", "unloads_driver"
    }  # fmt: skip
