"""Nodes whose kubelets say anything: they cost their own host its turn, and no run its record."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from gpufleet.cli import upgrade_run
from gpufleet.core.exit_status import ExitStatus
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.upgrade.gpus import MOST, gpus_of
from gpufleet.upgrade.nodes import LARGEST_MARK, MARK, MARK_REFUSED, SCALE_DOWN, patched
from gpufleet.upgrade.operations import clusters, record_file
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.clusters import find_nodes
from gpufleet.upgrade.operations.cordons import TRIES
from gpufleet.upgrade.operations.draining import drain
from gpufleet.upgrade.operations.record_file import Unwritten
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.states import Event, State
from tests.unit.upgrade import test_clusters
from tests.unit.upgrade.running import DRAINED, HOST, Steps, planned, running, state
from tests.unit.upgrade.test_abort import of_two, opened
from tests.unit.upgrade.test_cordons import CONFLICT
from tests.unit.upgrade.test_nodes_at_work import Api, node, nodes_of, pod
from tests.unit.upgrade.test_refused_cordons import Denying

pytestmark = pytest.mark.usefixtures("own_folder")
__all__ = ["opened"]  # the fixture

KIB = 1 << 10


def offering(gpus: Mapping[str, object]) -> dict[str, Any]:
    offered = {f"nvidia.com/{name}": count for name, count in gpus.items()}
    return {"status": {"allocatable": offered}}


SANE = offering({f"mig-{number}": "7" for number in range(MOST)})
ODD = {
    "kinds": offering({f"mig-{number}": "7" for number in range(MOST + 1)}),
    "a name": offering({"g" * 100: "1"}),
    "a number": offering({"gpu": "1" * 21}),
    "an annotation": {"metadata": {"annotations": {SCALE_DOWN: "no" * LARGEST_MARK}}},
}


def test_a_node_that_offers_much_is_drained() -> None:
    api = Api(patched(node(), SANE), pod("train", "Job"))
    assert not nodes_of(api).drain({"h": Policy()})["h"].given_up
    assert len(gpus_of(api.node or {})) == MOST


class TwoNodes(Api):
    """`n`, and `m` as any node is."""

    def __init__(self, there: dict[str, Any]) -> None:
        super().__init__(there, pod("train", "Job"))
        self.other = Api(node(), pod("train", "Job"))

    def get(self, path: str) -> dict[str, Any]:
        return super().get(path) if path.endswith("/n") else self.other.get(path)

    find = get

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        return super().merge(path, patch) if path.endswith("/n") else self.other.merge(path, patch)


@pytest.mark.parametrize("what", ODD)
def test_a_node_that_says_what_none_has_is_not_drained(what: str) -> None:
    """The other host goes on, and the record has nothing of that node."""
    api = TwoNodes(patched(node(), ODD[what]))
    nodes = ClusterNodes(cast(ClusterApi, api), "run-1", {"h": "n", "i": "m"})
    found = nodes.drain({"h": Policy(), "i": Policy()})
    assert found["h"].given_up.startswith("GF380 ")
    assert (found["i"].given_up, found["i"].drained) == ("", False)
    assert (api.wrote, list(nodes.cordons)) == ([], ["i"])
    if what != "an annotation":
        assert gpus_of(api.node or {}) == {}


@pytest.mark.parametrize("what", ODD)
def test_a_host_whose_node_says_what_none_has_is_left_out(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cluster:
        context = "c"

        def __init__(self, access: KubeAccess) -> None: ...

        def list(self, path: str, *how: Any) -> list[dict[str, Any]]:
            odd = patched(test_clusters.node("a", "1"), ODD[what])
            return [odd, test_clusters.node("b", "2")] if path == "/api/v1/nodes" else []

        def get(self, path: str) -> dict[str, Any]:
            return test_clusters.system(path)

        def close(self) -> None: ...

    monkeypatch.setattr(clusters, "ClusterApi", Cluster)
    hosts = [test_clusters.host("a", "1"), test_clusters.host("b", "2")]
    views, _ = find_nodes(hosts, [KubeAccess("file", "")], {"a": ["a"], "b": ["b"]})
    assert [[each[:5] for each in view.refusals] for view in views] == [["GF380"], []]


def begun(api: Api) -> Run:
    nodes = nodes_of(api)
    plan = planned(replace(HOST, name="i"))
    run = running(plan, Steps(), *DRAINED[:2], clusters={"h": nodes})
    run._posts, nodes.run = False, run.store.name
    return run


@pytest.mark.parametrize("killed", [False, True])
def test_a_node_that_changes_at_each_attempt_is_given_up(killed: bool) -> None:
    """Its cordon is refused, and each attempt would write down another mark. `killed`: after each
    attempt."""
    api = Denying(node())
    run = begun(api)
    for number in range(TRIES + 1):
        api.node = patched(api.node or {}, offering({"gpu": f"{number + 1}"}))
        assert state(run) is State.DRAINING
        drain(run, ["h"])
        if killed and state(run) is State.DRAINING:
            run = Run(run.store, run.plan, run.settings, run.children, print, {"h": nodes_of(api)})
            run.clusters["h"].run, run._posts = run.store.name, False
    assert state(run) is State.LEAVING
    assert run.progress.reasons["h"].startswith("GF380 ")
    events = [entry.event for entry in run.store.entries()]
    assert events.count(Event.CORDON_BEGAN.value) == TRIES


def test_a_node_that_changes_within_a_round_is_given_up() -> None:
    """Others write to it all the time: the attempts of one round count, too."""
    api = Api(node())
    run, counts = begun(api), iter(range(1, 1000))

    def merge(path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        if (patch.get("spec") or {}).get("unschedulable"):
            api.node = patched(api.node or {}, offering({"gpu": f"{next(counts)}"}))
            raise CONFLICT
        return Api.merge(api, path, patch)

    api.merge = merge  # type: ignore[method-assign]
    while state(run) is State.DRAINING:
        drain(run, ["h"])
    assert run.progress.reasons["h"].startswith("GF380 ")
    events = [entry.event for entry in run.store.entries()]
    assert events.count(Event.CORDON_BEGAN.value) == TRIES


def test_a_mark_that_a_kubelet_wrote_is_not_written_down() -> None:
    """On a node that the record has no cordon of, as in one of an earlier version."""
    mark = {"run": "run-1", "unschedulable": False, "clients": ["x" * LARGEST_MARK]}
    there = {"metadata": {"annotations": {MARK: json.dumps(mark)}}, "spec": {"unschedulable": True}}
    nodes = nodes_of(Api(patched(node(), there)))
    assert nodes.drain({"h": Policy()})["h"].given_up == MARK_REFUSED
    assert nodes.cordons == {}


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[Store, int], None]:
    """Leaves so much of a record for the end of what was begun."""

    def leave(store: Store, room: int) -> None:
        size = (store.path / "record.jsonl").stat().st_size
        monkeypatch.setattr(record_file, "LARGEST", size + room)
        monkeypatch.setattr(record_file, "RESERVE", room)

    return leave


def test_a_record_is_never_larger_than_what_is_read(full: Callable[[Store, int], None]) -> None:
    run = begun(Api(node()))
    full(run.store, KIB)

    def fill() -> None:
        for _ in range(100):
            run.write("resumed")

    with pytest.raises(Unwritten) as error:
        fill()
    assert [each.code for each in error.value.findings] == ["GF381"]
    assert f"abort --run {run.store.name}" in error.value.findings[0].remedy
    assert run.stopping.is_set()
    assert Store(run.store.path).progress().states["h"] is State.DRAINING


@pytest.mark.parametrize("host", ["h", "i"])
def test_no_host_is_begun_with_the_rest_of_a_record(
    host: str, full: Callable[[Store, int], None]
) -> None:
    """`h` is to be cordoned, `i` to be drained."""
    api = Api(node())
    run = begun(api)
    run.write(Event.PREPARED, "i")
    full(run.store, 64 * KIB)
    with pytest.raises(Unwritten) as error:
        drain(run, [host])
    assert [each.code for each in error.value.findings] == ["GF381"]
    assert "unschedulable" not in (api.node or {})["spec"]
    assert run.store.progress().states == {"h": State.DRAINING, "i": State.READY}


def test_an_abort_ends_a_run_whose_record_is_full(
    full: Callable[[Store, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = of_two(monkeypatch, *DRAINED, A="A", B="B")
    full(run, 64 * KIB)
    assert upgrade_run.aborted(run, print) is ExitStatus.CONVERGED
    assert run.progress().states == {"h": State.NOT_REACHED, "i": State.NOT_REACHED}
    assert run.progress().run == "aborted"
