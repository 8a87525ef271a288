"""`make demo-upgrade` succeeds only if the upgrade kept the demo's promises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pytest

from scripts.demo_upgrade_seen import (
    Requests,
    Seen,
    entries_of,
    goes_on,
    judge,
    lines,
    out_of_service,
)

OLD, NEW = "580.178.04", "595.91.07"
NODES = ("ubuntu2404", "ubuntu2404-2")
CANARY = "ubuntu2404-2"


def of(host: str, *events: str) -> list[Mapping[str, Any]]:
    """The events of a host, ten seconds apart."""
    return [{"time": 10.0 * n, "event": event, "host": host} for n, event in enumerate(events)]


FAILED = ("prepared", "draining", "changing", "restoring", "reverted", "reverted, in service")
CHANGED = ("prepared", "draining", "changing", "done", "done, in service")
STOPPED, FINISHED = ({"time": 99.0, "event": event} for event in ("stopped", "finished"))
GOOD = Seen(
    before=dict.fromkeys(NODES, OLD),
    between=dict.fromkeys(NODES, OLD),
    after=dict.fromkeys(NODES, NEW),
    requests=Requests(2, by_driver={OLD: 1, NEW: 1}),
    training=(f"started 0 {OLD}", f"saved 57 {OLD}", f"started 57 {NEW}"),
    steps={"before": 10, "between": 60, "after": 90},
    tries=([*of(CANARY, *FAILED), STOPPED],
           [*of(NODES[0], *CHANGED), *of(CANARY, *CHANGED), FINISHED]),
    canary=CANARY, target=NEW,
)  # fmt: skip
BESIDES = [*of(NODES[0], *CHANGED), *of(CANARY, *FAILED), STOPPED]
UNTIL_DRAINED = [*of(CANARY, *FAILED[:2]), STOPPED]


def test_what_is_promised_is_no_problem() -> None:
    assert judge(GOOD) == []
    text = "\n".join(lines(GOOD))
    assert f"2 sent, 2 answered (1 by {OLD}, 1 by {NEW}), 0 lost" in text
    assert "10 steps before, 60 after the first try, 90 at the end" in text
    assert f"ubuntu2404   {OLD} -> {OLD} -> {NEW}, out of service for 30 s" in text
    assert f"ubuntu2404-2 {OLD} -> {OLD} -> {NEW}, out of service for 40 s + 30 s" in text


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"requests": Requests(2, ["refused"], {OLD: 1})}, "1 requests were lost"),
        ({"requests": Requests()}, "no request was answered"),
        ({"requests": Requests(3, [], {OLD: 2})}, "neither answered nor counted"),
        ({"training": GOOD.training[::2]}, "ended by force"),
        ({"training": (*GOOD.training[:2], f"started 0 {NEW}")}, "from step 0 instead of 57"),
        ({"training": GOOD.training[:2]}, "does not run"),
        ({"training": ()}, "does not run"),
        ({"training": GOOD.training[:1]}, f"runs on driver {OLD}"),
        ({"steps": {"before": 10, "between": 60, "after": 60}}, "made no steps"),
        ({"between": {**GOOD.before, CANARY: NEW}}, f"{CANARY} had driver {NEW} after the first"),
        ({"after": {**GOOD.after, CANARY: OLD}}, f"{CANARY} has driver {OLD}, not {NEW}"),
        ({"before": GOOD.after, "between": GOOD.after}, f"has driver {NEW}, not {NEW}"),
        ({"tries": GOOD.tries[:1]}, "there were 1 tries"),
        ({"tries": (GOOD.tries[1], GOOD.tries[1])}, "roll back the canary alone"),
        ({"tries": (UNTIL_DRAINED, GOOD.tries[1])}, "roll back the canary alone"),
        ({"tries": (BESIDES, GOOD.tries[1])}, "roll back the canary alone"),
        ({"tries": (GOOD.tries[0], GOOD.tries[0])}, "return every node"),
    ],
)
def test_anything_else_is_one(change: Mapping[str, Any], problem: str) -> None:
    found = judge(replace(GOOD, **change))
    assert any(problem in each for each in found), found


def test_only_the_answer_of_a_gpu_is_one() -> None:
    requests = Requests()
    requests.add(200, f"{OLD}\n", 0.5)
    requests.add(200, "no GPU\n", 0.1)
    requests.add(503, OLD, 0.1)
    requests.add_lost("ConnectionRefusedError: refused")
    assert (requests.sent, requests.answered, len(requests.lost)) == (4, 1, 3)
    assert requests.slowest == 0.5
    assert Requests(**json.loads(json.dumps(asdict(requests)))) == requests


def test_the_log_of_a_run_has_its_phases() -> None:
    text = f"""\
2026-11-27 20:37:22 run 1: log
2026-11-27 20:37:23,489 [{CANARY}] Success
2026-11-27 20:37:24 {CANARY}: waiting: pods
2026-11-27 20:37:25 {CANARY}: draining
2026-11-27 20:37:35 {CANARY}: done, in service
2026-11-27 20:37:36 run 1: stopped: a canary failed: x
"""
    found = entries_of(text)
    assert [each["event"] for each in found] == ["draining", "done, in service", "stopped"]
    assert out_of_service(found) == {CANARY: 10.0}


def test_a_node_that_was_not_returned_has_no_time() -> None:
    assert out_of_service(of("a", "draining", "done", "done, in service")) == {"a": 20.0}
    assert out_of_service(of("a", "draining", "done")) == {}


@pytest.mark.parametrize(
    ("history", "steps", "goes"),
    [((), 5, False), (GOOD.training, 57, False), (GOOD.training, 60, True),
     (GOOD.training[:2], 60, False)],
)  # fmt: skip
def test_a_training_goes_on_with_a_step_of_its_last_pod(
    history: tuple[str, ...], steps: int, goes: bool
) -> None:
    assert goes_on(history, steps) is goes
