"""A step is a success where its process carried it out, and its report says so."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.operations.children import Children, Result
from gpufleet.upgrade.operations.standby import Standby

GOOD = {"status": "changed", "errors": [], "findings": [], "plan": {}}
BLOCKER = {"code": "GF072", "message": "job", "severity": "blocker"}
BLOCKED = {**GOOD, "status": "failed", "findings": [BLOCKER]}
WRITES = 'printf %s "$0" >"$GPUFLEET_REPORT"; exit {}'


def became(
    folder: Path, step: str, hosts: dict[str, Any], status: int = 0, **report: Any
) -> dict[str, Result]:
    """The results of a step whose process writes this report and ends with the status."""
    written = {"dry": False, "exit_status": status, "completed": True, "hosts": hosts, **report}
    program = ["sh", "-c", WRITES.format(status), json.dumps(written)]
    return Children(lambda *_: program, str(folder), folder, "run-1").step(step, list(hosts))


@pytest.mark.parametrize("step", ["prepare", "take", "change", "restore", "release"])
@pytest.mark.parametrize(
    "report",
    [
        {"dry": True},  # --debug-operations
        {"completed": False},  # ended early, with the status that is expected
        {"exit_status": 1},  # and 0 of the process
    ],
)
def test_a_step_that_was_not_carried_out_is_no_success(
    step: str, report: dict[str, Any], tmp_path: Path
) -> None:
    found = became(tmp_path, step, {"h": GOOD}, **report)["h"]
    assert (found.ok, found.code, found.reached) == (False, "GF270", True)
    assert "step-0001" in found.reason


def test_a_host_that_the_report_lacks_was_not_reached(tmp_path: Path) -> None:
    written = {"dry": False, "exit_status": 0, "completed": True, "hosts": {}}
    program = ["sh", "-c", WRITES.format(0), json.dumps(written)]
    found = Children(lambda *_: program, str(tmp_path), tmp_path, "r").step("look", ["h"])["h"]
    assert (found.ok, found.reached, found.code) == (False, False, "GF280")


@pytest.mark.parametrize(
    ("step", "run", "remedy"),
    [
        ("look", "", "then run `gpufleet upgrade` again."),
        ("change", "run-1", "then run `gpufleet upgrade resume --run run-1`."),
    ],
)
def test_what_to_do_about_a_step_without_a_report(
    step: str, run: str, remedy: str, tmp_path: Path
) -> None:
    made = Children(lambda *_: ["false"], str(tmp_path), tmp_path, run)
    with pytest.raises(Stopped) as error:
        made.step(step, ["h"])
    assert error.value.findings[0].remedy.endswith(remedy)


def test_an_exception_of_a_deploy_is_no_success(tmp_path: Path) -> None:
    """pyinfra ends with 1, the report of a host that has nothing to do says 0."""
    assert not became(tmp_path, "change", {"h": GOOD}, 1, exit_status=0)["h"].ok


@pytest.mark.parametrize(("reboot", "words"), [("never", 'node_reboot="never"'), ("", "")])
def test_a_step_has_the_node_reboot_of_its_run(reboot: str, words: str, tmp_path: Path) -> None:
    seen: list[str] = []
    written = {"dry": False, "exit_status": 0, "completed": True, "hosts": {"h": GOOD}}

    def program(hosts: Sequence[str], options: Sequence[str]) -> list[str]:
        seen.extend(options)
        return ["sh", "-c", WRITES.format(0), json.dumps(written)]

    Children(program, str(tmp_path), tmp_path, "run-1").step("change", ["h"], reboot=reboot)
    assert [word for word in seen if "node_reboot" in word] == ([words] if words else [])


def test_a_step_that_was_carried_out_is_one(tmp_path: Path) -> None:
    assert became(tmp_path, "change", {"h": GOOD}) == {"h": Result(True)}


def test_a_host_that_failed_takes_no_other_with_it(tmp_path: Path) -> None:
    found = became(tmp_path, "change", {"a": GOOD, "b": BLOCKED}, 1)
    assert found == {"a": Result(True), "b": Result(False, "GF072 job", busy=True)}


@pytest.mark.parametrize("odd", ["\ud800", json.loads("[" * 400 + "]" * 400)])
def test_what_one_host_says_spoils_no_other_part(tmp_path: Path, odd: Any) -> None:
    part = {**BLOCKED, "errors": [odd]}
    found = became(tmp_path, "change", {"a": GOOD, "b": part}, 1)
    assert found["a"] == Result(True)
    assert not found["b"].ok


def test_why_a_host_failed_comes_before_the_end_of_its_step(tmp_path: Path) -> None:
    assert became(tmp_path, "change", {"h": BLOCKED}, 1, completed=False)["h"].code == "GF072"


def test_an_error_that_is_ignored_is_no_success(tmp_path: Path) -> None:
    part = {**GOOD, "errors": ["Load the modules\n  | modprobe: not found"]}
    found = became(tmp_path, "change", {"h": part})["h"]
    assert (found.ok, found.reason) == (False, "modprobe: not found")


@pytest.mark.parametrize(("view", "ok"), [({"work": []}, True), ({}, False)])
def test_a_look_is_one_if_it_saw_the_host(view: dict[str, Any], ok: bool, tmp_path: Path) -> None:
    """One that says nothing of the work on the GPUs would pass for an idle host."""
    part = {**GOOD, "status": "converged", "plan": {"upgrade": view}}
    found = became(tmp_path, "look", {"h": part}, dry=True, completed=False)["h"]
    assert (found.ok, found.plan) == (ok, view)


WHOLE = {"dry": False, "exit_status": 1, "completed": True, "hosts": {"h": GOOD}}


@pytest.mark.parametrize("step", ["look", "change"])
def test_the_report_of_an_earlier_step_is_none(step: str, tmp_path: Path) -> None:
    (tmp_path / f"step-0001-{step}.json").write_text(json.dumps(WHOLE))
    made = Children(lambda *_: ["false"], str(tmp_path), tmp_path, "run-1")
    made._number = 0
    with pytest.raises(Stopped) as error:
        made.step(step, ["h"])
    assert error.value.findings[0].code == "GF069"


def test_a_step_has_files_of_its_own(tmp_path: Path) -> None:
    for name in ("step-0003-look.json", "step-0007-change.json", "step-x", "other"):
        (tmp_path / name).write_text("earlier")
    (tmp_path / "step-0008-look.log").symlink_to("other")
    became(tmp_path, "look", {"h": GOOD})
    assert (tmp_path / "step-0009-look.json").is_file()
    made = Children(lambda *_: ["false"], str(tmp_path), tmp_path, "run-1")
    made._number = 7
    with pytest.raises(Stopped):
        made.step("look", ["h"])
    assert (tmp_path / "step-0010-look.log").is_file()
    assert (tmp_path / "other").read_text() == "earlier"


def test_the_output_of_a_lost_step_has_no_secrets(tmp_path: Path) -> None:
    text = "echo password: abcdef; echo failed"
    made = Children(lambda *_: ["sh", "-c", text], str(tmp_path), tmp_path, "run-1")
    with pytest.raises(Stopped) as error:
        made.step("look", ["h"])
    assert "password: *** failed" in error.value.findings[0].message


@pytest.mark.parametrize(
    "report",
    ["", "{", "[1]", "{}", '{"hosts": []}', json.dumps({**WHOLE, "hosts": []}), "[" * 200_000,
     json.dumps({**WHOLE, "exit_status": None}), '"\udcff"'],
)  # fmt: skip
def test_a_report_that_cannot_be_read_is_none(report: str, tmp_path: Path) -> None:
    (tmp_path / "there").write_text(report, "utf-8", "surrogateescape")
    program = ["sh", "-c", 'cat there >"$GPUFLEET_REPORT"']
    made = Children(lambda *_: program, str(tmp_path), tmp_path, "run-1")
    with pytest.raises(Stopped) as error:
        made.step("look", ["h"])
    assert error.value.findings[0].code == "GF069"


@pytest.mark.parametrize(
    "part",
    [
        "x", [], {}, {"status": 1}, {**GOOD, "errors": [1]}, {**GOOD, "findings": ["x"]},
        {**GOOD, "findings": [{}]}, {**GOOD, "plan": []}, {**GOOD, "plan": {"upgrade": "x"}},
        {**GOOD, "plan": {"upgrade": {"work": "x"}}}, {**GOOD, "plan": {"upgrade": {"work": [1]}}},
    ],
)  # fmt: skip
def test_a_bad_part_of_a_report_is_of_its_host_alone(part: Any, tmp_path: Path) -> None:
    """Nothing is known of the host: it may have been changed."""
    found = became(tmp_path, "change", {"a": GOOD, "b": part})
    assert found["a"] == Result(True)
    assert (found["b"].ok, found["b"].code, found["b"].reached) == (False, "GF280", True)


class Silent:
    """A process that forks for steps, and does not answer."""

    def __init__(self) -> None:
        self.asked, self.ended = threading.Event(), threading.Event()

    def begin(self, *how: Any) -> None:
        self.asked.set()
        assert self.ended.wait(60)

    def end(self) -> None:
        self.ended.set()


def test_an_end_does_not_wait_for_what_forks(tmp_path: Path) -> None:
    silent = Silent()
    made = Children(
        lambda *_: ["touch", "begun"], str(tmp_path), tmp_path, "r", standby=cast(Standby, silent)
    )
    found: list[dict[str, Result]] = []
    step = threading.Thread(target=lambda: found.append(made.step("look", ["h"])))
    step.start()
    assert silent.asked.wait(60)
    made.end()
    step.join(60)
    assert found[0]["h"].reason == "the run was interrupted"
    assert not (tmp_path / "begun").exists()


DEPLOY = """\
from pyinfra import host, state
from gpufleet.host.operation import operation
from gpufleet.run.reporting import RunReport
RunReport.of(state).host(host.name).examined = True
@operation
def change():
    yield "touch changed"
change("Install the driver")
"""
CONFIG = Path(__file__).resolve().parents[3] / "config.py"


@pytest.mark.parametrize(
    ("more", "options", "ok"),
    [
        ("", [], True),
        ("", ["--debug-operations"], False),
        pytest.param("", ["--debug-facts"], False, marks=pytest.mark.extended),
        pytest.param("raise KeyError", [], False, marks=pytest.mark.extended),
    ],
)
def test_what_pyinfra_ended_early_is_no_success(
    more: str, options: Sequence[str], ok: bool, tmp_path: Path
) -> None:
    (tmp_path / "deploys").mkdir()
    deploy = tmp_path / "deploys/upgrade_driver.py"
    deploy.write_text(DEPLOY + more)
    (tmp_path / "config.py").write_text(CONFIG.read_text())

    def words(hosts: Sequence[str], data: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "pyinfra", "-y", *options, *data, "@local", str(deploy)]

    found = Children(words, str(tmp_path), tmp_path, "run-1").step("change", ["@local"])["@local"]
    assert (found.ok, os.path.exists(tmp_path / "changed")) == (ok, ok), found
