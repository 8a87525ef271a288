"""The node of each host, even if several hosts have the same machine id."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.drain.pods import Policy, unreplaced_pods
from gpufleet.kube.findings import API_UNREACHABLE
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.upgrade.models import HostView
from gpufleet.upgrade.operations import clusters
from gpufleet.upgrade.operations.clusters import NodeAt, find_nodes
from tests.unit.drain.pods_setup import pod


def system(path: str) -> dict[str, Any]:
    assert path == "/api/v1/namespaces/kube-system"
    return {"metadata": {"name": "kube-system", "uid": "uid-1"}}


def node(name: str, machine: str, address: str = "10.0.0.9") -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    status: dict[str, Any] = {"conditions": [ready], "nodeInfo": {"machineID": machine}}
    status["addresses"] = [{"type": "InternalIP", "address": address}]
    return {"metadata": {"name": name}, "status": status}


def found(
    monkeypatch: pytest.MonkeyPatch,
    nodes: list[dict[str, Any]],
    *views: HostView,
    code: str = "GF067",
    known_as: tuple[str, ...] = ("a", "b", "c"),
) -> dict[str, str]:
    """Nodes by host. Other hosts with a kubelet are refused with `code`. `known_as`: host names."""

    class Api:
        context = "c"

        def __init__(self, access: KubeAccess) -> None: ...

        def list(self, path: str, *how: Any) -> list[dict[str, Any]]:
            return nodes if path == "/api/v1/nodes" else []

        def get(self, path: str) -> dict[str, Any]:
            return system(path)

        def close(self) -> None: ...

    monkeypatch.setattr(clusters, "ClusterApi", Api)
    seen, places = find_nodes(
        views, [KubeAccess("file", "")], {view.name: known_as for view in views}
    )
    for view in seen:
        refused = any(code in each for each in view.refusals)
        assert refused is (view.kubelet and view.name not in places)
    return {name: place.node for name, place in places.items()}


def host(name: str, machine: str) -> HostView:
    return HostView(name, kubelet=True, machine=machine)


def test_a_node_is_found_by_its_machine_id(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("a", "1"), node("b", "2")]
    assert found(monkeypatch, nodes, host("x", "2"), host("y", "1")) == {"x": "b", "y": "a"}


def test_the_clusters_of_a_run_are_opened_with_their_leases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each cluster is opened once. Nodes of hosts that are left out count if they are Ready."""
    locked: list[Any] = []
    monkeypatch.setattr(clusters, "ClusterApi", lambda access: SimpleNamespace(context="lab"))
    monkeypatch.setattr(clusters, "take_lease", lambda api, *how: locked.append(api))
    monkeypatch.setattr(clusters, "remove_pods", lambda api: None)
    access = KubeAccess("/file", "lab")
    places = {
        "h": NodeAt("n1", access, machine="1", offers=True), "i": NodeAt("n2", access),
        "left": NodeAt("n3", access), "away": NodeAt("n4", access, ready=False),
    }  # fmt: skip
    found = clusters.open_clusters(places, "run", {"h", "i", "bare"}, lambda line: None)
    assert set(found) == {"h", "i"}
    assert found["h"] is found["i"]
    assert (found["h"].nodes, found["h"].others) == ({"h": "n1", "i": "n2"}, ["n3"])
    assert (found["h"].machines["h"], found["h"].offering) == ("1", ["h"])
    assert len(locked) == 1


@pytest.mark.parametrize(("known_as", "is_found"), [(("b",), True), (("x",), False)])
def test_a_node_may_have_a_kubelet_that_no_fact_knows(
    monkeypatch: pytest.MonkeyPatch, known_as: tuple[str, ...], is_found: bool
) -> None:
    """The kubelet may be stopped or have a unit of another name: its pods must still be evicted.
    A plain host from the same image has no node."""
    view = HostView("x", kubelet=False, machine="2")
    places = found(monkeypatch, [node("b", "2")], view, known_as=known_as)
    assert places == ({"x": "b"} if is_found else {})


def test_nodes_with_the_same_machine_id_are_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("a", "1"), node("b", "1"), node("c", "2")]
    assert found(monkeypatch, nodes, host("x", "1"), host("z", "2")) == {"z": "c"}


def test_hosts_with_the_same_machine_id_share_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, [node("a", "1")], host("x", "1"), host("y", "1")) == {}


@pytest.mark.parametrize(
    ("known_as", "is_found"),
    [
        (("B",), True),
        (("x", "10.0.0.9"), True),
        (("known-to-dns",), True),
        (("x", "10.0.0.8"), False),
    ],
)
def test_a_host_that_reports_the_machine_id_of_another_has_no_node(
    monkeypatch: pytest.MonkeyPatch, known_as: tuple[str, ...], is_found: bool
) -> None:
    """Else the administrator of that host could choose which node is drained."""

    def resolved(name: str, port: None) -> list[Any]:
        if name != "known-to-dns":
            raise OSError("not known")
        return [(0, 0, 0, "", ("10.0.0.9", 0))]

    monkeypatch.setattr("socket.getaddrinfo", resolved)
    wanted = {"x": "b"} if is_found else {}
    there = [node("b", "2")]
    assert found(monkeypatch, there, host("x", "2"), code="GF067", known_as=known_as) == wanted


def test_names_of_many_hosts_are_looked_up_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow DNS server delays a plan once, not for each host."""
    two = threading.Barrier(2)

    def resolved(name: str, port: None) -> list[Any]:
        two.wait(30)  # breaks unless both look-ups run at once
        return [(0, 0, 0, "", ("10.0.0.9", 0))]

    monkeypatch.setattr("socket.getaddrinfo", resolved)
    nodes = [node("a", "1"), node("b", "2")]
    places = found(monkeypatch, nodes, host("x", "1"), host("y", "2"), known_as=("known-to-dns",))
    assert places == {"x": "a", "y": "b"}


def test_pods_that_a_drain_evicts_or_waits_for_are_known_beforehand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only hosts of the run are read."""
    head = pod("head", "RayCluster", {})
    there = {"n1": [head, pod("web", "ReplicaSet", {}), pod("job", "Job", {})], "n2": []}
    listed: list[str] = []

    class Api:
        def __init__(self, access: KubeAccess) -> None: ...

        def close(self) -> None: ...

    def of_node(api: Api, name: str) -> list[Any]:
        listed.append(name)
        return there[name]

    monkeypatch.setattr(clusters, "ClusterApi", Api)
    monkeypatch.setattr("gpufleet.drain.operations.evict.of_node", of_node)
    places = {name: NodeAt(f"n{name}", KubeAccess("file")) for name in "123"}
    every = dict.fromkeys("12", Policy(every=True))
    leaving = clusters.leaving_pods(places, every)
    assert [unreplaced_pods(each) for each in leaving.values()] == [["ns/head (RayCluster)"], []]
    assert leaving["1"].waited == {"ns/job": "it is of a Job (upgrade_jobs)"}
    assert sorted(listed) == ["n1", "n2"]
    assert clusters.leaving_pods(places, {}) == {}
    assert len(listed) == 2


@pytest.mark.parametrize("kubelet", [True, False])
def test_a_host_may_be_a_node_of_a_cluster_that_is_away(
    monkeypatch: pytest.MonkeyPatch, kubelet: bool
) -> None:
    """Its kubelet may be stopped, or be a unit that no fact knows. Nodes of other clusters still
    take part."""
    closed: list[str] = []

    def listed(api: Any) -> list[Any]:
        if api.context == "away":
            raise ClusterProblem(API_UNREACHABLE(context="away", url="u", reason="timed out"))
        return [node("y", "1")]

    def opened(access: KubeAccess) -> Any:
        close = lambda: closed.append(access.context)  # noqa: E731
        return SimpleNamespace(
            context=access.context, close=close, get=system, list=lambda *how: []
        )

    monkeypatch.setattr(clusters, "every_node", listed)
    monkeypatch.setattr(clusters, "ClusterApi", opened)
    views = [HostView("x", kubelet=kubelet, machine="2"), host("y", "1")]
    accesses = [KubeAccess("file", "away"), KubeAccess("file", "there")]
    seen, places = find_nodes(views, accesses, {"x": ("x",), "y": ("y",)})
    assert list(places) == ["y"]
    assert seen[0].refusals[0].startswith("GF067 ")
    assert "context away" in seen[0].refusals[0]
    assert "timed out" in seen[0].refusals[0]
    assert seen[1].refusals == ()
    assert closed == ["away", "there"]
    seen, _ = find_nodes(views[:1], [accesses[0], KubeAccess("other", "away")], {"x": ("x",)})
    assert [each[:5] for each in seen[0].refusals] == ["GF067", "GF067"]


@pytest.mark.parametrize("kubelet", [True, False])
@pytest.mark.parametrize("of_host", [True, False])
def test_a_copied_machine_id_makes_no_node_a_plain_host(
    monkeypatch: pytest.MonkeyPatch, of_host: bool, kubelet: bool
) -> None:
    """Another node, or another host, claims the machine id of this host."""
    nodes = [node("a", "1")] if of_host else [node("a", "1"), node("evil", "1", "10.0.0.8")]
    views = [HostView("a", kubelet=kubelet, machine="1")]
    views += [HostView("evil", machine="1")] if of_host else []
    monkeypatch.setattr(clusters, "every_node", lambda api: nodes)
    monkeypatch.setattr(clusters, "owns_driver", lambda api: False)
    monkeypatch.setattr(
        clusters,
        "ClusterApi",
        lambda access: SimpleNamespace(context="c", get=system, close=lambda: None),
    )
    seen, places = find_nodes(views, [KubeAccess("file", "")], {"a": ("a",), "evil": ("evil",)})
    assert not places
    assert [each.refusals[0][:5] for each in seen if each.refusals] == ["GF067"]


@pytest.mark.parametrize(
    ("labels", "before", "reason"),
    [({"nvidia.com/gpu.deploy.driver": "pre-installed"}, "580.95.05", ""),
     ({"nvidia.com/gpu.deploy.driver": "pre-installed"}, None, "GF070"),
     ({"nvidia.com/gpu.deploy.driver": "true"}, "580.95.05", "GF070"), ({}, "580.95.05", "GF070")],
)  # fmt: skip
def test_the_operator_leaves_a_driver_of_the_host_alone(
    monkeypatch: pytest.MonkeyPatch, labels: dict[str, str], before: str | None, reason: str
) -> None:
    there = node("a", "1")
    there["metadata"]["labels"] = labels
    monkeypatch.setattr(clusters, "every_node", lambda api: [there])
    monkeypatch.setattr(clusters, "owns_driver", lambda api: True)
    monkeypatch.setattr(
        clusters,
        "ClusterApi",
        lambda access: SimpleNamespace(context="c", get=system, close=lambda: None),
    )
    view = HostView("a", machine="1", before=before)
    _, places = find_nodes([view], [KubeAccess("file", "")], {"a": ("a",)})
    assert (places["a"].reason or "")[:5] == reason


def test_names_are_looked_up_once_however_many_nodes_share_a_machine_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(clusters, "addresses_of", lambda name: asked.append(name) or [])
    nodes = [node(f"n{number}", "1") for number in range(20)]
    views = [HostView(f"h{number}", machine="1") for number in range(20)]
    known = {view.name: (view.name,) for view in views}
    monkeypatch.setattr(clusters, "every_node", lambda api: nodes)
    monkeypatch.setattr(clusters, "owns_driver", lambda api: False)
    monkeypatch.setattr(
        clusters,
        "ClusterApi",
        lambda access: SimpleNamespace(context="c", get=system, close=lambda: None),
    )
    find_nodes(views, [KubeAccess("file", "")], known)
    assert sorted(asked) == sorted(known)
