"""A cluster that does not answer for a while, in each step of a host that is out of service."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpufleet.kube.findings import API_UNREACHABLE, LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.upgrade.operations import changing, runner
from gpufleet.upgrade.operations.changing import change, mark_left, restore
from gpufleet.upgrade.operations.children import Result
from gpufleet.upgrade.operations.cluster import Round
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade.running import CHANGING, DRAINED, GOOD, Steps, planned, running

AWAY = ClusterProblem(API_UNREACHABLE(context="c", url="https://c", reason="timed out"))
LOST = ClusterProblem(LEASE_LOST(holder="another"))
RESTORING = (*CHANGING, Event.CHANGE_FAILED)


class Node:
    """In memory. `problem`: why the API does not answer to the methods in `silent`."""

    unchecked: Mapping[str, str] = {}
    has_image = frozenset("h")

    def __init__(self, *silent: str) -> None:
        self.silent, self.problem = set(silent), AWAY
        self.left_behind = ""

    def _answer(self, method: str) -> None:
        if method in self.silent:
            raise self.problem

    def clear(self, host: str, policy: Any) -> Round:
        self._answer("clear")
        return Round(drained=True)

    def check(self, host: str, image: str, seconds: float) -> str:
        self._answer("check")
        return ""

    def give_back(self, host: str) -> None:
        self._answer("give_back")

    def leave_behind(self, host: str, reason: str) -> None:
        self._answer("leave_behind")
        self.left_behind = reason

    def post_event(self, host: str, event: Event, reason: str) -> None:
        pass


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("gpufleet.upgrade.operations.run.POLL", 0.0)


def begun(node: Node, *events: Event, steps: Steps | None = None) -> Run:
    return running(planned(), steps or Steps(), *events, clusters={"h": node}, at=time.time())


def state(run: Run) -> State:
    return run.progress.states["h"]


@pytest.mark.parametrize("silent", ["clear", "check"])
@pytest.mark.parametrize(
    ("act", "events", "before", "after"),
    [(change, DRAINED, State.CHANGING, State.CHANGED),
     (restore, RESTORING, State.RESTORING, State.RESTORED)],
)  # fmt: skip
def test_a_host_stays_where_it_is_until_its_cluster_answers(
    silent: str,
    act: Callable[..., None],
    events: tuple[Event, ...],
    before: State,
    after: State,
) -> None:
    node = Node(silent)
    run = begun(node, *events)
    act(run, ["h"])
    assert state(run) is before
    node.silent.clear()
    act(run, ["h"])
    assert state(run) is after


@pytest.mark.parametrize(("act", "events"), [(change, DRAINED), (restore, RESTORING)])
def test_a_lost_lease_ends_the_process(act: Callable[..., None], events: tuple[Event, ...]) -> None:
    node = Node("clear")
    node.problem = LOST
    with pytest.raises(ClusterProblem):
        act(begun(node, *events), ["h"])


def test_a_cluster_that_stays_away_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changing, "UNREACHED", 0.0)
    run = running(planned(), Steps(), *CHANGING, clusters={"h": Node("clear")}, wait=0)
    change(run, ["h"])
    assert state(run) is State.FAILED


def test_a_return_waits_for_the_cluster() -> None:
    node = Node("give_back")
    run = begun(node, *CHANGING, Event.CHANGED)
    runner.give_back(run, ["h"])
    assert state(run) is State.CHANGED
    node.silent.clear()
    runner.give_back(run, ["h"])
    assert state(run) is State.DONE


def test_a_node_is_marked_once_its_cluster_answers() -> None:
    """Its state is written down before; another process repeats the mark too."""
    node = Node("leave_behind")
    run = begun(node, *RESTORING, steps=Steps(GOOD, restore=Result(False, "GF057 why")))
    restore(run, ["h"])
    assert state(run) is State.STUCK
    node.silent.clear()
    mark_left(run)
    assert node.left_behind == "GF057 why"
    node.left_behind = ""
    mark_left(run)
    assert node.left_behind == ""  # once
    again = Run(run.store, run.plan, run.settings, run.children, print, run.clusters)
    mark_left(again)
    assert node.left_behind == "GF057 why"
