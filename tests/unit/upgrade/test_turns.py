"""Hosts that wait keep no other host waiting, and a run ends with everything said on its nodes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpufleet.core.stopped import Stopped
from gpufleet.kube.findings import API_UNREACHABLE
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.decide import Act, Around, Do, End, Wait, decide
from gpufleet.upgrade.operations import cluster, runner
from gpufleet.upgrade.operations.changing import change
from gpufleet.upgrade.operations.check import Pull
from gpufleet.upgrade.operations.children import Result
from gpufleet.upgrade.operations.cluster import ClusterNodes, Seen
from gpufleet.upgrade.operations.drain import Round
from gpufleet.upgrade.operations.preparing import prepare
from gpufleet.upgrade.operations.run import UNREACHED, Run
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.progress import Entry, Progress
from gpufleet.upgrade.states import Event, State
from tests.fakes.cluster_api import FakeClusterApi
from tests.not_found import not_found
from tests.unit.upgrade.running import (
    CHANGING,
    DRAINED,
    HOST,
    Steps,
    planned,
    running,
    state,
)

pytestmark = pytest.mark.usefixtures("own_folder")

AWAY = ClusterProblem(API_UNREACHABLE(context="c", url="https://c", reason="timed out"))
REFUSED = ApiError("PATCH /api/v1/nodes/n", 422, {"message": "labels: Invalid value"}, "c")
GONE = ApiError("PATCH /api/v1/nodes/n", 503, {"message": "no endpoints"}, "c")
RESTORING = (*CHANGING, Event.CHANGE_FAILED, Event.RESTORE_BEGAN)


class Node:
    """A node in memory. `problems`: what its cluster answers to a method."""

    def __init__(self, **problems: ClusterProblem) -> None:
        self.problems = problems
        self.kured = SimpleNamespace(give_back=self.forgotten, taken=self.taken)
        self.marked, self.released = "", 0

    def forgotten(self) -> None:
        self.released += 1

    def taken(self) -> list[str]:
        self._answer("taken")
        return []

    def _answer(self, method: str) -> None:
        if problem := self.problems.get(method):
            raise problem

    def clear(self, host: str, policy: Any) -> Round:
        return Round(drained=True)

    unchecked: Mapping[str, str] = {}

    def check_refused(self, host: str, image: str) -> str:
        self._answer("check_refused")
        return ""

    has_image: frozenset[str] = frozenset()

    def pull(self, host: str, image: str, seconds: float) -> Pull:
        self._answer("pull")
        return Pull()

    def check(self, host: str, image: str, seconds: float) -> str:
        return ""

    def look(self) -> Seen:
        self._answer("look")
        return Seen()

    def drain(self, policies: Any) -> dict[str, Round]:
        return dict.fromkeys(policies, Round(drained=True))

    def give_back(self, host: str) -> None:
        self._answer("give_back")

    def leave_behind(self, host: str, reason: str) -> None:
        self._answer("leave_behind")
        self.marked = reason

    def post_event(self, host: str, event: Event, reason: str) -> None:
        pass


def with_other(run: Run, *events: Event) -> Run:
    """The run as a process reads it in whose record the host `g` has these events."""
    for event in events:
        run.store.append(Entry(time.time(), event.value, "g"))
    steps: Any = run.children
    return Run(run.store, run.plan, run.settings, steps, run.say, run.clusters)


def two(clusters: dict[str, Any], *events: Event, of_other: tuple[Event, ...]) -> Run:
    plan = planned(replace(HOST, name="g"), canaries=2, max_unavailable=2)
    run = running(plan, Steps(), *events, clusters=clusters, at=time.time())
    return with_other(run, *of_other)


def test_what_waits_takes_turns() -> None:
    progress = Progress(planned(*(replace(HOST, name=name) for name in "gi")))
    progress.states |= {"h": State.CHANGED, "g": State.RESTORING, "i": State.DRAINING}
    turns = []
    tried: frozenset[str] = frozenset()
    for _ in range(4):
        act = decide(progress, Around(1.0, tried=tried))
        assert isinstance(act, Act)
        turns.append(act.do)
        tried = frozenset() if tried.issuperset(act.hosts) else tried
        tried |= frozenset(act.hosts)
    assert turns == [Do.RETURN, Do.RESTORE, Do.DRAIN, Do.RETURN]


def test_hosts_that_cannot_be_prepared_yet_keep_no_other_waiting() -> None:
    plan = planned(*(replace(HOST, name=name) for name in "gij"), canaries=4, max_unavailable=2)
    progress = Progress(plan)
    progress.states |= {"g": State.READY, "i": State.READY, "j": State.DRAINING}
    waits = Around(1.0)
    assert decide(progress, waits) == Act(Do.PREPARE, ("h",))
    waits = replace(waits, tried=frozenset("h"))
    assert decide(progress, waits) == Act(Do.DRAIN, ("j", "g"))
    for name in "gi":
        progress.states[name] = State.DONE
    assert decide(progress, waits) == Act(Do.DRAIN, ("j",))
    assert decide(progress, replace(waits, tried=frozenset("jh"))) == Act(Do.PREPARE, ("h",))


def test_hosts_are_prepared_while_the_prepared_ones_wait() -> None:
    progress = Progress(planned(replace(HOST, name="g"), canaries=2))
    progress.states["g"] = State.READY
    waits = Around(1.0, tried=frozenset("h"), silent="timed out")
    assert decide(progress, waits) == Act(Do.PREPARE, ("h",))
    progress.states["h"] = State.READY
    assert isinstance(decide(progress, waits), Wait)


@pytest.mark.parametrize(
    ("begun", "problems"),
    [
        ((), ("check_refused", "look")),
        ((), ("pull",)),  # a webhook that does not answer
        ((Event.PREPARED,), ("check_refused", "look")),
        ((Event.PREPARED,), ("taken",)),  # who may list nodes, and not write kured's lock
    ],
)
def test_a_cluster_that_is_silent_for_long_is_passed_over(
    begun: tuple[Event, ...], problems: tuple[str, ...]
) -> None:
    after = State.REFUSED
    away = Node(**dict.fromkeys(problems, AWAY))
    run = two({"h": away, "g": Node()}, *begun, of_other=())
    hours = iter(range(0, 1_000_000, 7))
    run.clock = SimpleNamespace(now=lambda: time.time() + next(hours))  # type: ignore[assignment]
    run.stopping.wait = lambda seconds: False  # type: ignore[method-assign,assignment,misc]
    assert runner.carry_on(run).event == "finished"
    assert run.progress.states == {"h": after, "g": State.DONE}
    assert "timed out" in run.progress.reasons["h"]
    steps: Any = run.children
    assert steps.asked.count("prepare") == 1  # the silent one costs no process


class Answers(Node):
    """The cluster of two nodes, of which it answers for `h` with an error."""

    def __init__(self, error: ApiError) -> None:
        super().__init__()
        self.error = error

    def check_refused(self, host: str, image: str) -> str:
        if host == "h":
            raise self.error
        return ""


@pytest.mark.parametrize(("status", "after"), [(404, State.REFUSED), (503, State.WAITING)])
def test_an_answer_about_one_node_keeps_no_other_from_being_prepared(
    status: int, after: State
) -> None:
    path = "/api/v1/nodes/h"
    answer = not_found(path) if status == 404 else {"message": "not there"}
    node = Answers(ApiError(f"GET {path}", status, answer, "c"))
    run = two({"h": node, "g": node}, of_other=())
    prepare(run, ["h", "g"])
    assert run.progress.states == {"h": after, "g": State.READY}


def test_a_round_that_takes_long_is_no_time_without_a_look() -> None:
    """Else a cluster that answers with errors beside a slow one is waited for without end."""
    run = two({"h": Node()}, of_other=())
    clock = [1000.0]
    run.clock = SimpleNamespace(now=lambda: clock[0])  # type: ignore[assignment]
    for expected in (False, False, True):
        assert run.is_silent_for_long("h", 600.0) is expected
        clock[0] += 300.0
        run.round_over(["h"])


def test_time_in_which_nobody_asked_is_no_silence() -> None:
    run = two({"h": Node()}, of_other=())
    clock = [1000.0]
    run.clock = SimpleNamespace(now=lambda: clock[0])  # type: ignore[assignment]
    assert not run.is_silent_for_long("h", 600.0)
    clock[0] += 700.0  # a change of other hosts
    assert not run.is_silent_for_long("h", 600.0)
    for _ in range(10):
        clock[0] += 60.0
        silent = run.is_silent_for_long("h", 600.0)
    assert silent


@pytest.mark.parametrize(
    ("method", "begun"),
    [("pull", DRAINED), ("check_refused", ()), ("look", (Event.PREPARED,)),
     ("taken", (Event.PREPARED,))],
)  # fmt: skip
def test_a_cluster_that_hangs_is_not_waited_for_without_end(
    method: str, begun: tuple[Event, ...]
) -> None:
    """One look at it takes longer than the time that counts as none in which nobody asked."""
    clock = [1000.0]

    def hangs(*how: Any) -> None:
        clock[0] += 370.0
        raise AWAY

    node = Node()
    where: Any = node.kured if method == "taken" else node
    setattr(where, method, hangs)
    run = running(planned(), Steps(), *begun, clusters={"h": node}, wait=0)
    run.clock = SimpleNamespace(now=lambda: clock[0])  # type: ignore[assignment]
    before = state(run)
    while state(run) is before and clock[0] < 5000.0:
        if method == "pull":
            change(run, ["h"])
        elif method == "check_refused":
            prepare(run, ["h"])
        else:
            runner._decided(run)
        clock[0] += 60.0
    assert state(run) in (State.UNCHANGED, State.REFUSED)
    assert clock[0] < 2000.0  # begun at 1000, for 600 seconds


def test_a_host_whose_cluster_is_away_keeps_no_other_host_out_of_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away = Node(give_back=AWAY)
    run = two({"h": away}, *CHANGING, Event.CHANGED, of_other=DRAINED)
    write = run.write

    def written(event: Any, host: str = "", reason: str = "") -> None:
        write(event, host, reason)
        if (event, host) == (Event.RETURNED, "g"):
            away.problems.clear()  # the cluster answers again, once the other host is finished

    monkeypatch.setattr(run, "write", written)
    assert runner.carry_on(run).event == "finished"
    assert set(run.progress.states.values()) == {State.DONE}


@pytest.mark.parametrize("request_", ["", "abort"])
def test_a_node_that_its_cluster_refuses_ends_the_run_after_the_others(request_: str) -> None:
    run = two({"h": Node(give_back=REFUSED)}, *CHANGING, Event.CHANGED, of_other=DRAINED)
    if request_:
        run.store.ask(request_)
    with pytest.raises(Stopped) as error:
        runner.carry_on(run)
    assert [each.code for each in error.value.findings] == ["GF278"]
    assert "Invalid value" in error.value.findings[0].message
    assert run.progress.states["g"] in (State.DONE, State.NOT_REACHED)
    assert state(run) is State.CHANGED
    assert not run.progress.over


@pytest.mark.parametrize(
    ("problem", "after"), [(AWAY, State.CHANGING), (GONE, State.CHANGING), (REFUSED, State.FAILED)]
)
def test_an_api_that_is_away_during_the_check_says_nothing_of_the_host(
    monkeypatch: pytest.MonkeyPatch, problem: ClusterProblem, after: State
) -> None:
    """Else a working driver is rolled back."""
    monkeypatch.setattr(cluster, "POLL", 0.0)
    run = running(planned(), Steps(), *DRAINED, at=time.time(), node_timeout=1)
    api = FakeClusterApi()
    nodes = ClusterNodes(cast(ClusterApi, api), run.store.name, {"h": "n"})
    nodes.drain({"h": Policy()})
    nodes.stopping, run._posts = run.stopping, False
    nodes.has_image.add("h")
    run.clusters = {"h": nodes}
    cast(Any, run.children).before = lambda: setattr(api, "problem", problem)
    change(run, ["h"])
    assert state(run) is after


def test_a_run_ends_once_its_nodes_say_that_they_are_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "UNREACHED", 0.0)
    left = Node(leave_behind=AWAY)
    run = running(
        planned(), Steps(restore=Result(False, "GF057 why")), *RESTORING,
        clusters={"h": left}, at=time.time(),
    )  # fmt: skip
    with pytest.raises(Stopped) as error:
        runner.carry_on(run)
    assert [each.code for each in error.value.findings] == ["GF279"]
    assert not run.progress.over
    left.problems.clear()
    again = with_other(run)
    assert runner.carry_on(again).event == "finished"
    assert left.marked == "GF057 why"


def test_a_mark_that_is_refused_is_said_and_ends_no_run() -> None:
    said: list[str] = []
    run = running(
        planned(), Steps(restore=Result(False, "GF057 why")), *RESTORING,
        clusters={"h": Node(leave_behind=REFUSED)}, at=time.time(),
    )  # fmt: skip
    run.say = said.append
    assert runner.carry_on(run).event == "finished"
    assert sum("without a mark" in line for line in said) == 1
    assert UNREACHED > 0


def test_nodes_that_an_earlier_run_left_behind_are_out_of_service() -> None:
    """Though they are Ready: they count against upgrade_max_unavailable."""
    progress = Progress(planned(replace(HOST, name="g"), max_unavailable=2))
    progress.states["h"] = State.READY
    assert decide(progress, Around(1.0, behind=("a",))) == Act(Do.DRAIN, ("h",))
    end = decide(progress, Around(1.0, behind=("a", "b")))
    assert isinstance(end, End)
    assert end.event == "stopped"
    assert "a, b" in end.reason
    assert isinstance(decide(progress, Around(1.0, away=("c",), behind=("a",))), Wait)


def test_an_interrupted_run_lets_kured_go_where_no_host_is_out_of_service() -> None:
    at_work, idle = Node(), Node()
    run = two({"h": at_work, "g": idle}, *DRAINED, of_other=(Event.PREPARED,))
    run.stop()
    assert runner.carry_on(run).event == "interrupted"
    assert (at_work.released, idle.released) == (0, 1)


@pytest.mark.parametrize("request_", ["", "pause", "abort"])
def test_an_abort_ends_evictions(request_: str) -> None:
    """Within a round, which may last long in a large cluster."""
    nodes = ClusterNodes(cast(ClusterApi, None), "run-1", {"h": "n"})
    run = two({"h": nodes}, of_other=())
    if request_:
        run.store.ask(request_)
    assert nodes._is_over_in(0) is (request_ == "abort")
    run.stopping.set()
    assert nodes._is_over_in(60)
