"""Evictions of many pods in a round; the API is in memory."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from gpufleet.kube.findings import API_UNREACHABLE
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.operations import evictions
from gpufleet.upgrade.operations.evictions import AT_ONCE, FIRST, PASS, Evictions, Round
from gpufleet.upgrade.pods import Leaving, Policy, sort_pods
from tests.not_found import not_found

EVERY = Policy(every=True)
BUDGET = "The disruption budget web needs 1 healthy pods and has 1 currently"


def pod(name: str, owner: str = "web", ready: bool = True) -> dict[str, Any]:
    about = {"name": name, "namespace": "ns", "uid": name}
    refs = [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    ready_now = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"phase": "Running", "conditions": [ready_now]}
    return {"metadata": {**about, "ownerReferences": refs}, "spec": {}, "status": status}


class Api:
    """Says what `answer` says to an eviction of a pod: an HTTP status, 201 for success."""

    def __init__(
        self, answer: Callable[[str], int] = lambda name: 201, message: str = BUDGET
    ) -> None:
        self.answer, self.message = answer, message
        self.asked: list[str] = []
        self.waited: list[float] = []
        self.given_up: dict[str, str] = {}  # node -> why, in a look between two passes
        self.lists = 0
        self.at_once, self.most = 0, 0
        self.together: threading.Barrier | None = None
        self._guard = threading.Lock()

    def find(self, path: str) -> dict[str, Any]:
        return {}

    def list(self, path: str, **query: str) -> list[Any]:
        self.lists += 1
        return []

    def attempt(self, path: str, body: Mapping[str, Any]) -> None:
        name = path.split("/")[-2]
        with self._guard:
            self.asked.append(name)
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        if self.together:
            self.together.wait(10)
        status = self.answer(name)
        with self._guard:
            self.at_once -= 1
        if status == 0:
            raise ClusterProblem(API_UNREACHABLE(context="c", url="u", reason="timed out"))
        if status != 201:
            answer = not_found(path) if status == 404 else {"message": self.message}
            raise ApiError(f"POST {path}", status, answer, "c")


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr(evictions.time, "monotonic", lambda: clock[0])
    return clock


def of(api: Api) -> Evictions:
    def over_in(seconds: float) -> bool:
        api.waited.append(seconds)
        return False

    return Evictions(cast(ClusterApi, api), over_in, lambda nodes: api.given_up)


def leaving(**nodes: list[dict[str, Any]]) -> dict[str, Leaving]:
    return {node: sort_pods(pods, EVERY) for node, pods in nodes.items()}


def test_pods_of_many_nodes_are_evicted_side_by_side() -> None:
    api = Api()
    api.together = threading.Barrier(AT_ONCE)  # passed only by so many requests at once
    nodes = {f"n{i}": [pod(f"n{i}-{j}", f"o{j}") for j in range(4)] for i in range(AT_ONCE)}
    found = of(api).evict(leaving(**nodes))
    assert sorted(api.asked) == sorted(f"n{i}-{j}" for i in range(AT_ONCE) for j in range(4))
    assert api.most == AT_ONCE
    assert [each.evicted for each in found.values()] == [4] * AT_ONCE


def test_after_a_refusal_no_other_pod_of_its_controller_is_tried(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    monkeypatch.setattr(evictions, "AT_ONCE", 1)
    api = Api(lambda name: 429 if name.startswith("web") else 201)
    pods = [pod(f"web-{i}") for i in range(50)] + [pod(f"db-{i}", "db") for i in range(3)]
    rounds = of(api)
    found = rounds.evict(leaving(n=pods))["n"]
    assert Counter(name.split("-")[0] for name in api.asked) == {"web": 1, "db": 3}
    assert found.evicted == 3
    assert not found.given_up
    assert len([reason for reason in found.reasons if BUDGET in reason]) == 50


def test_refused_pods_are_tried_again_later_each_time(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    monkeypatch.setattr(evictions, "AT_ONCE", 1)
    free = False
    api = Api(lambda name: 201 if free else 429)
    rounds, pods = of(api), [pod("web-0"), pod("web-1")]

    def tried(at: float) -> int:
        now[0], before = at, len(api.asked)
        found = rounds.evict(leaving(n=pods))["n"]
        assert [BUDGET in reason for reason in found.reasons] == [not free] * len(found.reasons)
        assert len(found.reasons) == (0 if free else 2)
        return len(api.asked) - before

    assert tried(100.0) == 1
    assert tried(100.0 + FIRST - 0.1) == 0
    assert tried(100.0 + FIRST) == 1
    assert tried(100.0 + 2 * FIRST) == 0  # the second pause is twice as long
    assert tried(100.0 + 3 * FIRST) == 1
    free = True
    assert tried(200.0) == 2
    free = False
    assert tried(201.0) == 1  # after a success the first pause is short again
    assert tried(201.0 + FIRST) == 1


def test_a_refusal_that_lasts_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evictions, "AT_ONCE", 1)
    clock = [100.0]
    monkeypatch.setattr(evictions.time, "monotonic", lambda: clock[0])
    api = Api(lambda name: 429)
    rounds = of(api)
    lists = []
    for _ in range(4):
        rounds.evict(leaving(n=[pod("web-0")]))
        lists.append(api.lists)  # of pods that have no node
        clock[0] += 60
    assert lists == [0, 0, 1, 2]


def test_evictions_go_on_without_another_look(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    """A budget allows one pod, and another one each second."""
    monkeypatch.setattr(evictions, "AT_ONCE", 1)
    allowed = [1]

    def answer(name: str) -> int:
        if name == "db-0":
            return 404
        if not allowed[0]:
            return 429
        allowed[0] -= 1
        return 201

    api = Api(answer)
    pods = [pod(f"web-{i}") for i in range(9)] + [pod("db-0", "db")]
    rounds = of(api)

    def over_in(seconds: float) -> bool:
        api.waited.append(seconds)
        now[0] += seconds
        allowed[0] += int(seconds)
        return False

    rounds._over_in = over_in
    found = rounds.evict(leaving(n=pods), 7.0)["n"]
    assert found.evicted == 1 + 3 * 2  # at once, and in three more passes
    assert [seconds for seconds in api.waited if seconds] == [FIRST] * 3
    assert Counter(api.asked)["db-0"] == 1  # it is gone
    assert sum(BUDGET in reason for reason in found.reasons) == 9 - found.evicted
    assert Counter(api.asked)["web-0"] == 1


def test_a_pass_ends_for_the_next_look(monkeypatch: pytest.MonkeyPatch, now: list[float]) -> None:
    """Nodes that are empty meanwhile are changed, and pods that came are seen."""
    monkeypatch.setattr(evictions, "AT_ONCE", 1)

    def answer(name: str) -> int:
        now[0] += PASS / 4
        return 201

    api = Api(answer)
    found = of(api).evict(leaving(n=[pod(f"p{i}", f"o{i}") for i in range(9)]), PASS)["n"]
    assert (found.evicted, len(api.asked)) == (5, 5)
    assert found.reasons == []


def test_refusals_in_the_middle_of_a_pass_are_tried_again(
    monkeypatch: pytest.MonkeyPatch, now: list[float]
) -> None:
    """A turn is due some time after the beginning of the next pass."""
    monkeypatch.setattr(evictions, "AT_ONCE", 1)
    allowed = [1]

    def answer(name: str) -> int:
        now[0] += 0.1
        allowed[0] -= 1
        return 201 if allowed[0] >= 0 else 429

    rounds = of(api := Api(answer))

    def over_in(seconds: float) -> bool:
        now[0] += seconds
        if seconds:
            allowed[0] = 1
        return False

    rounds._over_in = over_in
    assert rounds.evict(leaving(n=[pod(f"web-{i}") for i in range(9)]), 30.0)["n"].evicted == 9
    assert Counter(api.asked)["web-0"] == 1


@pytest.mark.parametrize("seconds", [0.0, FIRST - 0.1])
def test_where_a_look_costs_little_evictions_wait_for_it(seconds: float) -> None:
    api = Api(lambda name: 201 if name == "db-0" else 429)
    found = of(api).evict(leaving(n=[pod("web-0"), pod("db-0", "db")]), seconds)["n"]
    assert (found.evicted, Counter(api.asked)) == (1, {"web-0": 1, "db-0": 1})


def test_nothing_is_repeated_while_nothing_moves(now: list[float]) -> None:
    api = Api(lambda name: 429)
    of(api).evict(leaving(n=[pod("web-0")]), 60.0)
    assert api.asked == ["web-0"]


def test_pods_that_serve_nobody_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evictions, "AT_ONCE", 1)
    api = Api()
    of(api).evict(leaving(n=[pod("up"), pod("down", ready=False)]))
    assert api.asked == ["down", "up"]


def test_a_node_that_is_given_up_keeps_its_other_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evictions, "AT_ONCE", 1)
    api = Api(lambda name: 403 if name == "bad" else 201)
    found = of(api).evict(leaving(a=[pod("bad", "x"), pod("more", "x")], b=[pod("other", "y")]))
    assert api.asked == ["bad", "other"]
    assert "ns/bad cannot be evicted" in found["a"].given_up
    assert found["b"] == Round(evicted=1)


SEVERAL = "This pod has more than one PodDisruptionBudget, which is not supported."


@pytest.mark.parametrize(
    ("status", "message", "final"),
    [
        (403, "pods/eviction is forbidden", True),
        (500, SEVERAL, True),
        (500, "failed calling webhook", False),
        (502, "Bad Gateway", False),
        (503, "no endpoints available", False),
        (504, "couldn't update PodDisruptionBudget due to conflicts", False),
        (408, "Request Timeout", False),
    ],
)
def test_a_refusal_that_passes_gives_no_node_up(status: int, message: str, final: bool) -> None:
    api = Api(lambda name: status, message)
    found = of(api).evict(leaving(a=[pod("web-1")]))["a"]
    assert bool(found.given_up) is final
    assert message in (found.given_up or found.reasons[0])


def test_a_cluster_that_does_not_answer_ends_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evictions, "AT_ONCE", 1)
    api = Api(lambda name: 0)
    with pytest.raises(ClusterProblem):
        of(api).evict(leaving(n=[pod(f"p{i}", f"o{i}") for i in range(9)]))
    assert len(api.asked) == 1


def test_a_node_that_others_return_to_service_is_looked_at_before_each_pass(
    now: list[float],
) -> None:
    """A look at all pods of a large cluster takes long: evictions go on between two of them."""
    api = Api(lambda name: 201 if name == "b-1" or api.asked.count(name) > 1 else 429)

    def over_in(seconds: float) -> bool:
        now[0] += seconds
        api.given_up = {"a": "another user uncordoned it during the run"}
        return False

    rounds = Evictions(cast(ClusterApi, api), over_in, lambda nodes: api.given_up)
    nodes = leaving(a=[pod("a-1", "a")], b=[pod("b-1", "b"), pod("b-2", "c")])
    found = rounds.evict(nodes, 60.0)
    assert "uncordoned" in found["a"].given_up
    assert sorted(api.asked) == ["a-1", "b-1", "b-2", "b-2"]
    assert found["b"].evicted == 2


def test_a_run_that_is_ended_evicts_nothing_more() -> None:
    api = Api()
    rounds = Evictions(cast(ClusterApi, api), lambda seconds: True, lambda nodes: {})
    assert rounds.evict(leaving(n=[pod("web-0")])) == {"n": Round()}
    assert api.asked == []


@pytest.mark.parametrize("status", [404, 409])
def test_a_pod_that_is_gone_is_no_obstacle(status: int) -> None:
    assert of(Api(lambda name: status)).evict(leaving(n=[pod("web-0")])) == {"n": Round()}


def test_nothing_is_waited_for_once_no_pod_is_left_to_evict(now: list[float]) -> None:
    """All are on their way, but for those of a node that is given up."""
    api = Api(lambda name: 403 if name == "bad" else 201)
    nodes = leaving(a=[pod("bad", "x")], b=[pod("web-0"), pod("db-0", "db")])
    assert of(api).evict(nodes, 60.0)["b"].evicted == 2
    assert not any(api.waited)
