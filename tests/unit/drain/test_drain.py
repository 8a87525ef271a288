"""A pass of evictions over many pods; the API is in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, cast

import pytest

from gpufleet.drain.nodes import UPGRADE_FIELD_MANAGER
from gpufleet.drain.operations.evict import FIRST, LONGEST, PASS, Evictions, Round, every_node
from gpufleet.drain.pods import Policy, sort_pods
from gpufleet.kube.findings import API_UNREACHABLE
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from tests.fakes.cluster_api import make_pod
from tests.not_found import not_found

BUDGET = "The disruption budget web needs 1 healthy pods and has 1 currently"
Answer = Callable[[str], int]


class Api:
    """Answers an eviction with an HTTP status, 201 for success."""

    def __init__(self, answer: Answer = lambda name: 201, *, old: bool = False) -> None:
        self.answer, self.old = answer, old
        self.asked: list[str] = []
        self.bodies: list[Mapping[str, Any]] = []
        self.pending: list[Any] = []
        self.guard = threading.Lock()

    def find(self, path: str) -> dict[str, Any] | None:
        return None if self.old else {}

    def list(self, path: str, **query: str) -> list[Any]:
        return self.pending

    def attempt(self, path: str, body: Mapping[str, Any]) -> None:
        name = path.split("/")[-2]
        with self.guard:
            self.asked.append(name)
            self.bodies.append(body)
        status = self.answer(name)
        if status == 0:
            raise ClusterProblem(API_UNREACHABLE(context="c", url="u", reason="timed out"))
        if status != 201:
            answer = not_found(path) if status == 404 else {"message": BUDGET}
            raise ApiError(f"POST {path}", status, answer, "c")


class Drained:
    """Repeated passes of evictions over the same pods; `now` is the time."""

    def __init__(self, api: Api, *pods: dict[str, Any]) -> None:
        self.now, self.over, self.pods = 100.0, False, pods
        client = cast(ClusterApi, api)
        self.evictions = Evictions(client, lambda: self.over, clock=lambda: self.now)

    def look(self) -> dict[str, Round]:
        names = dict.fromkeys(pod["spec"]["nodeName"] for pod in self.pods)
        on = {name: [p for p in self.pods if p["spec"]["nodeName"] == name] for name in names}
        return self.evictions.evict({name: sort_pods(on[name], Policy()) for name in on})


def test_pods_of_many_nodes_are_evicted_in_one_pass() -> None:
    api = Api()
    pods = [make_pod(f"p{n}", node=f"n{n % 3}", owner=f"o{n % 4}") for n in range(12)]
    found = Drained(api, *pods).look()
    assert {name: each.evicted for name, each in found.items()} == {"n0": 4, "n1": 4, "n2": 4}
    assert sorted(api.asked) == sorted(f"p{n}" for n in range(12))
    assert {body["apiVersion"] for body in api.bodies} == {"policy/v1"}
    uids = [body["deleteOptions"]["preconditions"]["uid"] for body in api.bodies]
    assert sorted(uids) == sorted(api.asked)


def test_before_1_22_evictions_are_of_policy_v1beta1() -> None:
    api = Api(old=True)
    Drained(api, make_pod("p")).look()
    assert api.bodies[0]["apiVersion"] == "policy/v1beta1"


def test_after_a_refusal_no_other_pod_of_its_controller_is_tried() -> None:
    api = Api(lambda name: 429 if name.startswith("web") else 201)
    pods = [make_pod("web1", owner="web"), make_pod("web2", owner="web"), make_pod("db")]
    found = Drained(api, *pods).look()["n"]
    assert sorted(api.asked) == ["db", "web1"]
    assert found.reasons == [f"ns/web1: {BUDGET}", f"ns/web2: {BUDGET}"]
    assert (found.evicted, found.given_up, found.drained) == (1, "", False)


def test_a_refused_pod_is_tried_again_later_each_time() -> None:
    api = Api(lambda name: 429)
    drained = Drained(api, make_pod("web"))
    times = []
    for _ in range(400):
        before = len(api.asked)
        assert drained.look()["n"].reasons
        times += [drained.now] if len(api.asked) > before else []
        drained.now += 1.0
    pauses = [late - early for early, late in pairwise(times)]
    assert pauses[:4] == [FIRST, 4.0, 8.0, 16.0]
    assert max(pauses) == LONGEST
    api.answer = lambda name: 201
    drained.now += LONGEST
    assert drained.look()["n"].evicted == 1


def test_a_refusal_that_lasts_is_looked_into() -> None:
    api = Api(lambda name: 429)
    waits = {"reason": "Unschedulable", "message": "0/3 nodes are available"}
    successor = make_pod("web-2", owner="web")
    successor["status"] = {"conditions": [waits]}
    api.pending = [successor]
    drained = Drained(api, make_pod("web", owner="web"))
    assert "has no node" not in drained.look()["n"].reasons[0]
    for _ in range(3):
        drained.now += LONGEST
        found = drained.look()["n"].reasons[0]
    assert "ns/web-2 has no node: 0/3 nodes are available" in found


def test_pods_that_serve_nobody_go_first() -> None:
    api = Api(lambda name: 201 if name == "broken" else 429)
    found = Drained(api, make_pod("serving"), make_pod("broken", ready=False)).look()["n"]
    assert api.asked == ["broken", "serving"]
    assert found.evicted == 1


@pytest.mark.parametrize("status", [404, 409])
def test_a_pod_that_is_gone_is_no_obstacle(status: int) -> None:
    assert Drained(Api(lambda name: status), make_pod("p")).look()["n"].reasons == []


@pytest.mark.parametrize("status", [403, 500])
def test_another_answer_is_the_reason(status: int) -> None:
    """For example from two budgets for one pod, a webhook, or a namespace that is being deleted."""
    found = Drained(Api(lambda name: status), make_pod("p")).look()["n"]
    assert found.reasons == [f"ns/p: {status} {BUDGET}"]
    assert not found.given_up


def test_a_cluster_that_does_not_answer_ends_the_pass() -> None:
    with pytest.raises(ClusterProblem):
        Drained(Api(lambda name: 0), make_pod("p")).look()


def test_a_run_that_ends_evicts_nothing_more() -> None:
    api = Api()
    drained = Drained(api, make_pod("p"))
    drained.over = True
    assert drained.look()["n"] == Round()
    assert not api.asked


def test_a_pass_ends_for_the_next_look() -> None:
    api = Api()
    drained = Drained(api, make_pod("a"), make_pod("b"))

    def slow(name: str) -> int:
        drained.now += PASS
        return 201

    api.answer = slow
    assert drained.look()["n"].evicted == 1


def test_nodes_keep_only_our_managed_fields_and_no_images() -> None:
    ours, theirs = {"manager": UPGRADE_FIELD_MANAGER}, {"manager": "kubelet"}

    class Nodes:
        def list(self, path: str, accept: str, kept: Callable[[Any], Any]) -> list[Any]:
            names = {"name": "n", "managedFields": [theirs, ours]}
            return [kept({"metadata": names, "status": {"images": ["one"], "phase": "on"}})]

    (node,) = every_node(cast(ClusterApi, Nodes()))
    assert node == {"metadata": {"name": "n", "managedFields": [ours]}, "status": {"phase": "on"}}


def test_pods_that_stay_are_named() -> None:
    waited, going = make_pod("job", "Job"), make_pod("going")
    going["metadata"]["deletionTimestamp"] = "now"
    api = Api()
    found = Drained(api, waited, going).look()["n"]
    assert found.reasons == ["ns/job: it is of a Job (upgrade_jobs)", "ns/going: it is ending"]
    assert not api.asked
