"""The output of `gpufleet upgrade`, in which hosts and clusters choose parts of each line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import gpufleet.upgrade
from gpufleet.core.progress import heartbeat_line
from gpufleet.drain.pods import Leaving
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.host.upgrade_state import HostState, Phase
from gpufleet.upgrade.models import LeftOut, Plan
from gpufleet.upgrade.show import (
    RELEASE_STUCK,
    RUN_GOES_ON,
    Status,
    ended_text,
    shown_progress,
    status_dict,
    status_text,
    text_without_run,
    upgrade_plan_text,
)
from tests.unit.drain.pods_setup import pod

STATE = HostState("r", "upgrade", "driver", "580.1", "580.2", "2 x A100, ubuntu2204, 5.15", 0)
BELL = "\x1b[2J\a"


def plan(**more: Any) -> Plan:
    hosts = {"h": STATE, "i": replace(STATE, wave=1)}
    limits = UpgradeSettings.model_validate({"soak": 60})
    return replace(Plan("r", "upgrade", "driver", hosts, limits), **more)


def test_a_plan_names_groups_waves_and_what_is_special_of_a_host() -> None:
    text = upgrade_plan_text(
        plan(left_out=(LeftOut("x", "GF052 GPUs are missing", blocked=True),)),
        {"h": ("train 1", "train 2"), "gone": ("job",)},
        {"h": "h", "i": "node-i"},
        {"i": Leaving([pod("head", "RayCluster", {})], {"ns/vllm": "it has data in an emptyDir"})},
    )
    assert text.splitlines() == [
        "2 hosts in 1 group:",
        "  2 x A100, ubuntu2204, 5.15: 580.1 -> 580.2 on 2 hosts",
        "1. canary: h",
        "2. wave of 1: i",
        "at most 1 out of service; soak 60 s (60 s in all); stops at 3 failed hosts, 2 in a row",
        "each host asks its repositories before its drain; without the target, it is left as it is",
        "waits for GPU work on h: train 1, train 2",
        "waits for pods on i: ns/vllm: it has data in an emptyDir",
        "evicts from i what its controller may not replace: ns/head (RayCluster)",
        "node: i -> node-i",
        "left out: x: GF052 GPUs are missing",
    ]
    assert upgrade_plan_text(plan(resumed=True), {}).startswith(
        "Run r is not finished: it goes on."
    )
    one_wave = upgrade_plan_text(plan(hosts={"h": STATE}), {})
    assert "at most 1 out of service; one wave, no soak; stops at" in one_wave
    same = upgrade_plan_text(plan(hosts={"h": replace(STATE, target=STATE.before)}), {})
    assert "5.15: 580.1 on 1 host" in same, "released or rebooted"
    none = upgrade_plan_text(plan(hosts={}, left_out=(LeftOut("x", "no GPU"),)), {})
    assert none == "No host to change.\nleft out: x: no GPU"


def test_a_run_that_goes_on_plans_only_the_hosts_that_it_has_not_finished() -> None:
    done, out = STATE.moved(Phase.DONE, 5.0), STATE.moved(Phase.DONE, 5.0, out=True)
    other = replace(STATE, group="L40S", phase=Phase.STUCK)
    hosts = {"h": done, "k": other, "i": replace(STATE, wave=1), "j": replace(out, wave=1)}
    pods = {name: Leaving(waited={"ns/a": "it runs"}) for name in hosts}
    resumed = plan(hosts=hosts, resumed=True)
    lines = upgrade_plan_text(resumed, {"h": ("train",)}, {}, pods).splitlines()
    assert [line for line in lines if not line.startswith("at most ")] == [
        "Run r is not finished: it goes on.",
        "already done: h",
        "already stuck: k",
        "2 hosts in 1 group:",
        "  2 x A100, ubuntu2204, 5.15: 580.1 -> 580.2 on 2 hosts",
        "2. wave of 2: i, j",
        "waits for pods on i: ns/a: it runs",
        "waits for pods on j: ns/a: it runs",
    ]


def test_a_warning_about_the_target_is_there_once_for_its_hosts() -> None:
    warnings = dict.fromkeys(("h", "i", "gone"), ("GF111 Driver 580.2 is not in the catalog.",))
    lines = upgrade_plan_text(plan(), {}, warnings=warnings).splitlines()
    assert [line for line in lines if line.startswith("warning: ")] == [
        "warning: 2 hosts (h, i): GF111 Driver 580.2 is not in the catalog."
    ]


def test_what_hosts_say_moves_no_cursor() -> None:
    left = (LeftOut(f"x{BELL}", BELL),)
    shown = upgrade_plan_text(
        plan(left_out=left), {"h": (BELL,)}, {"h": BELL}, {"h": Leaving(waited={BELL: BELL})}
    )
    state = replace(STATE, why=BELL)
    shown += status_text(BELL, [Status(f"h{BELL}", state, BELL), Status("i", problem=BELL)])
    assert not set(shown) & set(BELL[:1] + BELL[-1])


@pytest.mark.parametrize("phase", list(Phase))
def test_the_status_of_hosts_has_its_schema(phase: Phase) -> None:
    folder = Path(gpufleet.upgrade.__file__).parent
    schema = json.loads((folder / "status.schema.json").read_text())
    state = STATE.moved(phase, 5.0, "why", out=True)
    hosts = [Status("h", state, "ops@there"), Status("new"), Status("away", problem="GF009 …")]
    found = status_dict("prod.py", hosts)
    Draft202012Validator(schema).validate(found)
    assert [each["state"] for each in found["hosts"]] == [phase.value, None, None]
    text = status_text("prod.py", hosts).splitlines()
    assert text[:2] == [f"prod.py: 1 {phase.value}", "at work: ops@there"]
    assert text[3].split()[:3] == ["h", phase.value, "yes"]
    assert f"{STATE.before} -> {STATE.target}" in text[3]
    ways_out = [RELEASE_STUCK] if phase is Phase.STUCK else []  # a process is at work on the others
    assert text[4:] == ["h: why", "away: GF009 …", *ways_out]
    assert status_text("prod.py", [Status("h")]) == "prod.py: no upgrade has been here"


def test_a_run_that_nobody_carries_on_has_its_ways_out() -> None:
    text = status_text("prod.py", [Status("h", STATE.moved(Phase.CHANGING, 5.0), "")])
    assert text.splitlines()[-1] == RUN_GOES_ON
    ended = status_text("prod.py", [Status("h", STATE.moved(Phase.DONE, 5.0), "")])
    assert "gpufleet" not in ended


def test_without_a_run_an_abort_names_the_hosts_that_may_be_out_of_service() -> None:
    done, stuck = (STATE.moved(phase, 5.0) for phase in (Phase.DONE, Phase.STUCK))
    assert text_without_run([Status("h", done), Status("new")]) == ("No unfinished run.", True)
    text, is_well = text_without_run([Status("h", stuck), Status("i", problem="GF005 away")])
    assert text.splitlines() == [
        "No unfinished run on the hosts that answered.",
        "i: GF005 away",
        f"Stuck: h. {RELEASE_STUCK}",
    ]
    assert not is_well


def test_a_run_that_goes_on_shows_what_is_done_to_which_host() -> None:
    states = {"h": STATE.moved(Phase.CHANGING, 5.0), "i": STATE, "j": STATE.moved(Phase.DONE, 9.0)}
    line = heartbeat_line(shown_progress(states, 0.0, 65.0))
    assert line.startswith("Running on 3 hosts, 65 s: 1 at work")
    assert "h 60 s: changing" in line


@pytest.mark.parametrize(
    ("phases", "names"),
    [
        ((Phase.CHANGING, Phase.DONE, Phase.DRAINING), "2 hosts (h0, h2)"),
        ((Phase.DONE, Phase.WAITING), ""),
    ],
)
def test_a_process_that_is_ended_names_the_hosts_that_it_leaves_out_of_service(
    phases: tuple[Phase, ...], names: str
) -> None:
    states = {f"h{n}": STATE.moved(phase, 5.0) for n, phase in enumerate(phases)}
    text = ended_text(states)
    assert text.endswith(RUN_GOES_ON)
    assert text.removesuffix(RUN_GOES_ON).rstrip(". ").rpartition(": ")[2] == names
    assert "\n" not in text
