"""What hosts and clusters say is text on a terminal, whatever it contains."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from gpufleet.cli.upgrade import say
from gpufleet.core.progress import heartbeat, terminal_lines
from gpufleet.upgrade.decide import AGAIN, Decision, End, Wait
from gpufleet.upgrade.models import LeftOut
from gpufleet.upgrade.operations import runner
from gpufleet.upgrade.plan import make_plan
from gpufleet.upgrade.progress import OVER, Progress
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.show import plan_text, run_state, shown_progress, status_dict, status_text
from gpufleet.upgrade.states import State
from tests.unit.upgrade.running import HOST, Steps, planned, running

ESCAPE = "\x1b]0;x\x07\x1b[2J\nleft out: b"


def is_plain(text: str) -> bool:
    return all(line.isprintable() and line != "left out: b" for line in text.split("\n"))


def test_a_plan_and_a_run_contain_no_control_character() -> None:
    host = replace(HOST, name=f"h{ESCAPE}", model=ESCAPE, before=ESCAPE, loaded=ESCAPE)
    plan = make_plan([replace(host, target=f"580{ESCAPE}")], UpgradeSettings.model_validate({}))
    plan = replace(plan, left_out=(LeftOut(f"b{ESCAPE}", ESCAPE),))
    text = plan_text(plan, [(host.name, [ESCAPE])])
    assert is_plain(text)
    assert text.count("\\x1b[2J\\nleft out") >= 5
    progress = Progress(plan, reasons={host.name: ESCAPE}, reason=ESCAPE)
    assert is_plain(status_text("r", progress, ESCAPE, ESCAPE))


def test_a_plan_names_nodes_that_are_called_otherwise() -> None:
    text = plan_text(planned(), nodes={"h": "node-7", "i": "i"})
    assert "node: h -> node-7" in text.split("\n")
    assert "i -> i" not in text


def test_a_plan_names_pods_that_a_drain_ends() -> None:
    text = plan_text(planned(), ending=[("h", [f"ns/p{n} (RayCluster)" for n in range(5)])])
    wanted = "evicts from h what its controller may not replace: ns/p0 (RayCluster), ns/p1"
    assert any(line.startswith(wanted) for line in text.split("\n"))


def test_what_a_run_waits_for_contains_no_control_character(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run = running(planned(), Steps())
    said: list[str] = []
    run.say = said.append
    decisions: list[Decision] = [Wait(0.0, f"alerts: {ESCAPE}"), End("paused")]
    monkeypatch.setattr(runner, "_decided", lambda run: decisions.pop(0))
    runner.carry_on(run)
    assert said[0].startswith("waiting for the alerts: ")
    assert is_plain(said[0])


def test_a_wait_is_announced_once_with_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    run = running(planned(), Steps())
    said: list[str] = []
    looks: list[float] = []
    run.say = said.append
    began = run.clock.now()
    hour, second = Wait(began + 3600, "window"), Wait(began + 1, "alerts")
    decisions: list[Decision] = [hour, hour, second, End("paused")]
    monkeypatch.setattr(runner, "_decided", lambda run: decisions.pop(0))
    monkeypatch.setattr(runner, "_wait", lambda run, until: looks.append(until - began))
    runner.carry_on(run)
    announced = [line.split(" until ") for line in said if line.startswith("waiting")]
    assert [words for words, _ in announced] == ["waiting for the window", "waiting for the alerts"]
    ends = time.mktime(time.strptime(announced[0][1], "%Y-%m-%d %H:%M:%S"))
    assert ends == pytest.approx(time.time() + 3600, abs=60)
    assert looks == pytest.approx([AGAIN, AGAIN, 1], abs=5)


def test_a_line_of_a_run_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    say("h: \x1b[2J")
    assert capsys.readouterr().err == "h: \\x1b[2J\n"


def test_a_run_that_goes_on_shows_what_is_done_to_which_host() -> None:
    hosts = [replace(HOST, name=name) for name in "abcdef"]
    progress = Progress(make_plan(hosts, UpgradeSettings.model_validate({})))
    states = (State.DRAINING, State.DONE, State.REVERTED, State.REFUSED, State.READY, State.WAITING)
    progress.states.update(zip("abcdef", states, strict=True))
    progress.since["a"] = 1000.0
    shown = shown_progress(progress, 900.0, 1065.0)
    assert terminal_lines(shown, 80, 24) == [
        "Running on 6 hosts, 2 min 45 s: 1 at work, 1 failed, 2 waiting, 1 done, 1 with…",
        "  a       65 s  draining",
    ]
    assert heartbeat(shown).endswith("1 with no changes; a 65 s: draining")


@pytest.mark.parametrize(("count", "head"), [(1, "1 host in 1 group:"), (2, "2 hosts in 1 group:")])
def test_a_plan_has_the_form_of_its_numbers(count: int, head: str) -> None:
    hosts = [replace(HOST, name=f"h{n}") for n in range(count)]
    lines = plan_text(make_plan(hosts, UpgradeSettings.model_validate({}))).split("\n")
    assert (lines[0], lines[2]) == (head, "1. canary: h0")


STATUS = json.loads(
    resources.files("gpufleet.upgrade").joinpath("status.schema.json").read_text("utf-8")
)


@pytest.mark.parametrize("event", ["begun", "resumed", "interrupted", "paused", *OVER])
def test_the_status_of_a_run_has_its_schema(event: str) -> None:
    plan = replace(planned(), left_out=(LeftOut("b", "no GPU"), LeftOut("c", "GF005", True)))
    for state in State:
        progress = Progress(plan, states={"h": state}, since={"h": 1_795_341_600.5}, run=event)
        for locked in (True, False):
            shown = run_state(progress, locked=locked)
            found = status_dict("run-1", progress, "prod.py", shown)
            jsonschema.validate(found, STATUS)
    assert found["hosts"][0]["since"] == "2026-11-22T10:00:00Z"
    assert [each["blocked"] for each in found["left_out"]] == [False, True]
    states = STATUS["properties"]["hosts"]["items"]["properties"]["state"]["enum"]
    assert states == [state.value for state in State]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "state": "unknown"}, STATUS)


def test_the_status_of_a_run_names_hosts_that_are_left_out() -> None:
    plan = replace(planned(), left_out=(LeftOut("b", "no GPU"),))
    assert "left out: b: no GPU" in status_text("r", Progress(plan), "i", "running").split("\n")


def test_a_plan_without_hosts_says_so_and_why() -> None:
    left = LeftOut("b", "GF005 Connection failed", True)
    plan = replace(planned(), hosts=(), waves=(), left_out=(left,))
    assert plan_text(plan) == "No host to change.\nleft out: b: GF005 Connection failed"
