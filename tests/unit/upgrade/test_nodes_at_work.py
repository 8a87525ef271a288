"""Nodes whose state others change while a run is at work on them; the API is in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from gpufleet.kube.findings import LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.decide import Act, Around, Do, decide
from gpufleet.upgrade.node_return import returning
from gpufleet.upgrade.nodes import (
    MARK,
    TAINT,
    cordoning,
    is_cordoned,
    is_left_behind,
    mark_of,
    patched,
    tainting,
    why_not_begun,
)
from gpufleet.upgrade.operations import cluster, node_checks
from gpufleet.upgrade.operations.changing import change, restore
from gpufleet.upgrade.operations.children import Result
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.cordons import MEANWHILE
from gpufleet.upgrade.operations.gpu_pod import Pull
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.states import Event, State
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

RUN = "run-1"
OWNER = {"kind": "DaemonSet", "name": "o", "uid": "u", "controller": True}
READY = {"type": "Ready", "status": "True"}
GPU = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}


def node() -> dict[str, Any]:
    status = {"conditions": [READY], "nodeInfo": {"machineID": "mine"}}
    return {"metadata": {"name": "n", "resourceVersion": "1"}, "spec": {}, "status": status}


def pod(name: str, kind: str = "ReplicaSet") -> dict[str, Any]:
    owner = {**OWNER, "kind": kind}
    about = {"name": name, "namespace": "ns", "uid": name, "ownerReferences": [owner]}
    return {"metadata": about, "spec": GPU, "status": {"phase": "Running"}}


class Api:
    """One node and its pods. `before_write`: what others do just before a write."""

    context = ""

    def __init__(self, there: dict[str, Any] | None, *pods: dict[str, Any]) -> None:
        self.node, self.pods = there, list(pods)
        self.wrote: list[str] = []
        self.before_write: Callable[[], None] = lambda: None

    def find(self, path: str) -> dict[str, Any] | None:
        return self.node

    def get(self, path: str) -> dict[str, Any]:
        if self.node is None:
            raise ApiError(f"GET {path}", 404, not_found(path), "c")
        return self.node

    def list(self, path: str, *how: Any, **query: str) -> list[Any]:
        return list(self.pods)

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        self.before_write()
        assert self.node
        self.wrote.append(path)
        self.node = patched(self.node, patch)
        return self.node

    def attempt(self, path: str, body: Mapping[str, Any]) -> None:
        self.wrote.append(path)

    delete = attempt


def nodes_of(api: Api, *offering: str) -> ClusterNodes:
    known = {"machines": {"h": "mine"}, "offering": offering}
    return ClusterNodes(cast(ClusterApi, api), RUN, {"h": "n"}, **known)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LEAVES", -1.0)


def ours() -> dict[str, Any]:
    return patched(node(), cordoning(node(), RUN, "now") or {})


def test_a_pod_that_came_before_the_cordon_is_no_surprise() -> None:
    api = Api(node())
    api.before_write = lambda: api.pods.append(pod("late"))
    found = nodes_of(api).drain({"h": Policy()})["h"]
    assert not found.drained
    assert any(path.endswith("late/eviction") for path in api.wrote)


def test_a_node_that_others_cordon_first_is_theirs() -> None:
    api = Api(node())
    nodes = nodes_of(api)
    seen = api.list

    def listed(path: str, *how: Any, **query: str) -> list[Any]:
        api.node = patched(node(), {"spec": {"unschedulable": True}})
        return seen(path, *how, **query)

    api.list = listed  # type: ignore[method-assign]
    assert nodes.drain({"h": Policy()})["h"].given_up == "another user cordoned the node"
    assert api.wrote == []


@pytest.mark.parametrize("at", ["before the taint", "before the deletion"])
def test_clients_of_a_node_that_is_taken_back_stay(at: str) -> None:
    """Another user uncordons the node and removes the mark, while its pods are listed or tainted
    away: its device plugin is not taken, and no taint of the run is left."""
    api = Api(ours(), pod("plugin", "DaemonSet"))
    seen = api.list

    def listed(path: str, *how: Any, **query: str) -> list[Any]:
        api.node = node()
        return seen(path, *how, **query)

    def merged(path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        api.node = patched(node(), {"spec": {"taints": patch["spec"]["taints"]}})
        return api.node

    if at == "before the taint":
        api.list = listed  # type: ignore[method-assign]
    else:
        api.merge = merged  # type: ignore[method-assign]
    nodes = nodes_of(api)
    assert not nodes.drain({"h": Policy()})["h"].drained
    assert api.wrote == []
    assert "no mark" in nodes.drain({"h": Policy()})["h"].given_up
    api.merge = lambda path, patch: Api.merge(api, path, patch)  # type: ignore[method-assign]
    nodes.give_back("h")
    assert not (api.node or {})["spec"].get("taints")


def test_another_machine_of_the_name_is_not_drained() -> None:
    """The node was deleted while a Job was waited for, and registered again by another machine."""
    other = patched(node(), {"status": {"nodeInfo": {"machineID": "theirs"}}})
    api = Api(other, pod("web"))
    assert "another machine" in nodes_of(api).drain({"h": Policy()})["h"].given_up
    assert api.wrote == []


def test_a_node_that_was_cordoned_is_not_cordoned_again() -> None:
    """Its mark is gone: another user has removed it, or the node is a new one."""
    api = Api(node(), pod("train", "Job"))
    nodes = nodes_of(api)
    assert not nodes.drain({"h": Policy()})["h"].given_up
    api.node, api.wrote = node(), []
    assert "no mark" in nodes.drain({"h": Policy()})["h"].given_up
    assert api.wrote == []


def test_a_node_that_offers_no_gpu_for_a_moment_is_waited_for() -> None:
    """Its device plugin restarts: what the node has to offer again would not be known."""
    api = Api(node())
    waits = nodes_of(api, "h").drain({"h": Policy()})["h"]
    assert waits.reasons == ["the node offers no GPU now"]
    assert api.wrote == []
    api.node = patched(node(), {"status": {"allocatable": {"nvidia.com/gpu": "1"}}})
    assert nodes_of(api, "h").drain({"h": Policy()})["h"].drained


def test_a_client_that_was_not_ready_before_is_no_fault_of_the_change() -> None:
    good, bad = pod("plugin", "DaemonSet"), pod("falco", "DaemonSet")
    good["metadata"]["ownerReferences"] = [{**OWNER, "name": "plugin"}]
    good["status"]["conditions"] = [READY]
    api = Api(ours(), good, bad)
    nodes_of(api).clear("h", Policy())
    assert api.node
    assert mark_of(api.node)["clients"] == ["ns/plugin"]


def test_a_node_whose_gpus_came_late_is_checked_by_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(node_checks, "run_pod", lambda api, node, image, gpu, *how: ran.append(gpu))
    api = Api(ours())
    nodes = nodes_of(api)
    assert nodes.check("h", "image", 0.01) == ""
    assert (ran, nodes.unchecked) == ([], {"h"})
    api.node = patched(ours(), {"status": {"allocatable": {"nvidia.com/gpu": "1"}}})
    nodes.check("h", "image", 0.01)
    assert (ran, nodes.unchecked) == (["nvidia.com/gpu"], set())


def with_gpus(count: str) -> dict[str, Any]:
    return patched(ours(), {"status": {"allocatable": {"nvidia.com/gpu": count}}})


def test_a_node_that_lost_its_gpus_before_the_roll_back_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its mark knows of none, what was planned does: the plugin needs a moment."""
    monkeypatch.setattr(node_checks, "POLL", 0.0)
    ran: list[str] = []
    monkeypatch.setattr(node_checks, "run_pod", lambda api, node, image, gpu, *how: ran.append(gpu))
    api = Api(ours())
    nodes = nodes_of(api, "h")
    nodes.goes_back = True
    assert nodes.drain({"h": Policy()})["h"].reasons == []  # nothing to wait for before
    assert (nodes.check("h", "image", 0.01), ran) == ("", [])  # a user may have removed it
    assert nodes.unchecked == {"h"}
    looks = iter(range(10))
    find = api.find

    def late(path: str) -> dict[str, Any] | None:
        api.node = with_gpus("1") if next(looks) == 3 else api.node
        return find(path)

    api.find = late  # type: ignore[method-assign]
    nodes.check("h", "image", 60.0)
    assert (ran, nodes.unchecked) == (["nvidia.com/gpu"], set())


def test_a_node_whose_gpus_its_mark_does_not_know_has_to_have_them_after_a_change() -> None:
    """Its plugin was away for the moment of the cordon, or another user changed the mark."""
    assert "offers no GPU" in nodes_of(Api(ours()), "h").check("h", "image", 0.01)


def test_a_node_that_loses_its_gpus_before_its_cordon_is_not_cordoned() -> None:
    api = Api(patched(node(), {"status": {"allocatable": {"nvidia.com/gpu": "1"}}}))
    seen = api.list

    def listed(path: str, *how: Any, **query: str) -> list[Any]:
        api.node = node()
        return seen(path, *how, **query)

    api.list = listed  # type: ignore[method-assign]
    found = nodes_of(api, "h").drain({"h": Policy()})["h"]
    assert (found.drained, found.reasons, api.wrote) == (False, ["the node offers no GPU now"], [])


@pytest.mark.parametrize("pods", [(), (pod("web"),), (pod("dcgm", "DaemonSet"),)])
def test_nothing_leaves_a_node_that_could_not_be_cordoned(pods: tuple[dict[str, Any], ...]) -> None:
    """Its plugin is away for the moment of the write alone."""
    offers = patched(node(), {"status": {"allocatable": {"nvidia.com/gpu": "1"}}})
    api = Api(offers, *pods)
    reads = iter([node()])  # the first is that of the patch
    api.get = lambda path: next(reads, offers)  # type: ignore[method-assign]
    found = nodes_of(api, "h").drain({"h": Policy()})["h"]
    assert (found.drained, found.reasons) == (False, [MEANWHILE])
    assert api.wrote == []


def test_a_count_that_no_plugin_offers_is_of_its_node_alone() -> None:
    api = Api(with_gpus("1"))
    mark = {"run": RUN, "unschedulable": False, "gpus": {"nvidia.com/gpu": "9" * 5000}}
    api.node = patched(api.node or {}, {"metadata": {"annotations": {MARK: json.dumps(mark)}}})
    assert "offers less" in nodes_of(api).check("h", "image", 0.01)


ODD = {"metadata": {"name": 1, "namespace": {}}, "spec": "x", "status": []}


def test_an_object_of_any_shape_is_a_problem_of_its_cluster() -> None:
    with pytest.raises(ClusterProblem) as error:
        nodes_of(Api(ours(), ODD)).drain({"h": Policy()})
    assert [each.code for each in error.value.findings] == ["GF869"]


def test_an_object_that_cannot_be_read_keeps_no_other_node_from_its_drain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = Api(ours())
    nodes = nodes_of(api)
    nodes.nodes = {"h": "n", "odd": "m"}
    there = {"n": ours(), "m": ours()}
    pods: dict[str, list[Any]] = {"n": [], "m": [ODD]}
    monkeypatch.setattr(cluster, "nodes_of", lambda api, names, size: {n: there[n] for n in names})
    monkeypatch.setattr(cluster, "pods_of", lambda api, names, size: {n: pods[n] for n in names})
    found = nodes.drain({"h": Policy(), "odd": Policy()})
    assert found["h"].drained
    assert "AttributeError" in found["odd"].reasons[0]
    there, api.wrote = {"n": node(), "m": ours()}, []
    nodes = nodes_of(api)
    nodes.nodes, nodes.is_aborted = {"h": "n", "odd": "m"}, lambda: True
    assert nodes.drain({"odd": Policy(), "h": Policy()}) == {}
    assert not api.wrote  # no further node is cordoned


@pytest.mark.parametrize("offering", [(), ("h",)])
def test_an_image_is_pulled_for_nodes_with_gpus(
    monkeypatch: pytest.MonkeyPatch, offering: tuple[str, ...]
) -> None:
    """Also for those whose GPUs are lost, or whose plugin left in the drain."""
    asked: list[str] = []

    def pulled(api: object, node: object, image: str, *more: object) -> Pull:
        asked.append(image)
        return Pull()

    monkeypatch.setattr(node_checks, "pulled", pulled)
    nodes = nodes_of(Api(node()), *offering)
    assert nodes.pull("h", "image", 1.0) == Pull()
    assert (len(asked), "h" in nodes.has_image) == (len(offering), bool(offering))
    mark = cordoning(node(), RUN, "now", {"nvidia.com/gpu": "1"}) or {}
    nodes_of(Api(patched(node(), mark))).pull("h", "image", 1.0)
    assert len(asked) == len(offering) + 1


@pytest.mark.parametrize(("kind", "name"), [("ReplicaSet", "web"), ("Job", "train")])
def test_a_pod_that_appears_after_the_drain_stops_the_change(kind: str, name: str) -> None:
    api = Api(ours(), pod(name, kind), pod("plugin", "DaemonSet"))
    assert f"ns/{name}" in nodes_of(api).clear("h", Policy()).reasons
    assert api.wrote == []  # neither pods nor clients were touched


def test_a_node_that_was_deleted_does_not_stop_the_run() -> None:
    nodes = nodes_of(Api(None))
    assert "not in the cluster" in nodes.clear("h", Policy()).given_up
    nodes.leave_behind("h", "why")
    nodes.give_back("h")


def test_another_node_of_the_same_name_is_left_alone() -> None:
    api = Api(node(), pod("plugin", "DaemonSet"))
    nodes = nodes_of(api)
    assert "replaced" in nodes.clear("h", Policy()).given_up
    nodes.leave_behind("h", "why")
    nodes.give_back("h")
    assert api.wrote == []
    assert api.node == node()


def test_a_node_of_the_run_is_left_behind() -> None:
    api = Api(ours())
    nodes_of(api).leave_behind("h", "why")
    assert api.node
    assert is_cordoned(api.node)
    assert api.node["metadata"]["annotations"][MARK]


def test_nodes_that_became_unready_are_away() -> None:
    there = [node() for _ in range(5)]
    for number, each in enumerate(there):
        each["metadata"]["name"] = f"n{number}"
    for each in there[1:]:
        each["status"] = {}
    there[2] = patched(there[2], cordoning(there[2], RUN, "now") or {})
    api = Api(node())
    api.list = lambda path, *how, **query: there  # type: ignore[method-assign]
    mine = {"a": "n0", "b": "n1", "c": "n2"}  # n1 failed by itself, n2 is at work
    assert ClusterNodes(cast(ClusterApi, api), RUN, mine, ["n4"]).away() == ["n1", "n4"]


def test_a_node_that_was_registered_again_is_not_taken_for_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its mark nothing says which GPUs it offered."""
    monkeypatch.setattr(node_checks, "POLL", 0.0)
    for there in (node(), None):
        assert nodes_of(Api(there))._not_as_before("h").startswith("the node ")
    assert "replaced" in nodes_of(Api(node())).check("h", "image", 0.01)
    assert nodes_of(Api(ours())).check("h", "image", 0.01) == ""


def test_a_lost_lease_fails_no_host() -> None:
    tainted = patched(ours(), tainting(ours(), RUN, there=True) or {})
    api = Api(tainted)

    def lost() -> None:
        raise ClusterProblem(LEASE_LOST(holder="another"))

    api.before_write = lost
    with pytest.raises(ClusterProblem):
        nodes_of(api).check("h", "image", 0.1)


def marked(text: str) -> dict[str, Any]:
    return patched(ours(), {"metadata": {"annotations": {MARK: text}}})


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "7", "[]", "{}", '{"run": 7}', "9" * 5000])
def test_a_mark_that_cannot_be_used_is_that_of_an_unknown_run(text: str) -> None:
    """A node can write its own annotations."""
    there = marked(text)
    assert mark_of(there) == {"run": "?"}
    assert why_not_begun(there, RUN) == "run ? of gpufleet is at work on the node"
    assert returning(there, RUN) is None


def test_fields_of_a_mark_that_no_run_writes_are_left_out() -> None:
    wrong = {"scale_down": [1], "managed": {}, "gpus": {"a": 1}, "clients": [1], "new": 1}
    there = marked(json.dumps({"run": RUN, "since": "now", "unschedulable": "yes", **wrong}))
    assert mark_of(there) == {"run": RUN, "since": "now"}
    there = marked(json.dumps({"run": RUN, "unschedulable": False, **wrong}))
    assert tainting(there, RUN, there=True, clients=["ns/plugin"])
    back = patched(there, returning(there, RUN) or {})
    assert not is_cordoned(back)


BACK = {"metadata": {"annotations": {MARK: None}}, "spec": {"unschedulable": None}}
OTHERS = {"key": TAINT, "value": "run-0", "effect": "NoSchedule"}


def at_work(steps: Steps, *events: Event) -> tuple[Run, Api]:
    """A run whose host is a node that it has tainted, and its API."""
    run = running(planned(replace(HOST, name="i", model="b")), steps, *events, wait=0)
    name = run.store.name
    there = patched(node(), cordoning(node(), name, "now") or {})
    api = Api(patched(there, tainting(there, name, there=True) or {}))
    nodes = ClusterNodes(cast(ClusterApi, api), name, {"h": "n"}, machines={"h": "mine"})
    nodes.has_image.add("h")
    nodes.stopping, run._posts, run.clusters = run.stopping, False, {"h": nodes}
    nodes.cordons = run.progress.cordons
    nodes.record = lambda event, host, mark: run.write(event, host, mark=mark)
    return run, api


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("result", [Result(True), Result(False, "GF303 apt failed")])
@pytest.mark.parametrize("again", [False, True])
def test_a_node_that_is_taken_back_during_its_change_is_in_service(
    again: bool, result: Result, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user removes the mark and uncordons the node, or it is registered again: nothing of the run
    is left on it, the host is not touched any more, and takes no room from others."""
    monkeypatch.setattr(node_checks, "POLL", 0.0)
    steps = Steps(change=result)
    run, api = at_work(steps, *(CHANGING if killed else DRAINED))
    run.settings["h"] = run.settings["h"].model_copy(update={"node_timeout": 0.01})

    def taken() -> None:
        api.node = node() if again else patched(api.node or {}, BACK)
        api.node["spec"]["taints"] = [*api.node["spec"].get("taints", ()), OTHERS]

    if killed:
        taken()
    else:
        steps.before = lambda: taken() if steps.asked == ["change"] else None
    change(run, ["h"])
    assert state(run) is State.FAILED
    restore(run, ["h"])
    assert (state(run), run.unmarked) == (State.UNCHECKED, {})
    assert "restore" not in steps.asked
    assert "was not checked" in run.progress.reasons["h"]
    assert ("GF303" in run.progress.reasons["h"]) is not (result.ok or killed)
    assert (api.node or {})["spec"].get("taints") == [OTHERS]
    assert run.progress.out_of_service == 0
    run.progress.states["i"] = State.READY
    assert decide(run.progress, Around(1e9)) == Act(Do.DRAIN, ("i",))


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("there", [None, {"spec": {"unschedulable": True}}])
def test_a_node_without_its_mark_that_takes_no_pods_is_out_of_service(
    there: dict[str, Any] | None,
) -> None:
    """It was deleted, or its cordon stayed: that may be the one of the run."""
    run, api = at_work(Steps(), *CHANGING, Event.CHANGE_FAILED)
    api.node = patched(api.node or {}, {**BACK, **there}) if there else None
    restore(run, ["h"])
    assert state(run) is State.STUCK
    assert not (api.node or {"spec": {}})["spec"].get("taints")


@pytest.mark.usefixtures("own_folder")
def test_a_node_that_keeps_its_mark_is_not_taken_back() -> None:
    run, api = at_work(Steps(restore=Result(False, "GF057 why")), *CHANGING, Event.CHANGE_FAILED)
    assert run.clusters["h"].taken_back("h") == ""
    assert not api.wrote
    restore(run, ["h"])
    assert (state(run), is_left_behind(api.node or {})) == (State.STUCK, True)


def test_a_check_that_begins_when_the_run_ends_raises_nothing() -> None:
    nodes = nodes_of(Api(ours()))
    nodes.stopping.set()
    assert nodes.check("h", "image", 0.01) == ""
