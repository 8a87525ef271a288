"""Nodes of a run while users cordon, uncordon and delete them; the API is in memory."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gpufleet.drain.nodes import (
    CORDONED,
    FAILED,
    GONE,
    OTHER_MACHINE,
    SKIP_LABEL,
    STAYS_CORDONED,
    UNCORDONED,
    UNMANAGED,
    UPGRADE_ANNOTATION,
    is_our_cordon,
    taken_of,
)
from gpufleet.drain.operations import check, cluster
from gpufleet.drain.operations.check import NODE_OFFERS_NO_GPU
from gpufleet.drain.operations.cluster import ClusterNodes
from gpufleet.drain.operations.cordon import NOT_KEPT_TEXT
from gpufleet.drain.operations.evict import Round
from gpufleet.drain.pods import TAINT, Policy
from gpufleet.kube.findings import API_UNREACHABLE, LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from tests.fakes.cluster_api import FakeClusterApi, make_node, make_pod

pytestmark = pytest.mark.claim(
    "What another user does to a node before, during and after an upgrade stays.",
    level=1,
)

RUN = "run-1"
AWAY = ClusterProblem(API_UNREACHABLE(context="c", url="https://c", reason="timed out"))
REFUSED = ApiError("POST", 403, {"message": "no"}, "c")
LOST = ClusterProblem(LEASE_LOST(holder="another"))


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LEAVES", -1.0)
    monkeypatch.setattr(check, "CHECK_POLL_SECONDS", 0.0)


def nodes_of(api: FakeClusterApi, run: str = RUN) -> ClusterNodes:
    client = cast(ClusterApi, api)
    return ClusterNodes(client, run, {"h": "n"}, machines={"h": "mine"}, offering=["h"])


def drain(nodes: ClusterNodes) -> Round:
    return nodes.drain({"h": Policy()})["h"]


def drained(*pods: dict[str, Any]) -> tuple[FakeClusterApi, ClusterNodes]:
    api = FakeClusterApi(pods=pods)
    nodes = nodes_of(api)
    for _ in range(3):
        found = drain(nodes)
    assert found.drained
    return api, nodes


def keys(node: dict[str, Any]) -> list[str]:
    return [taint["key"] for taint in node["spec"].get("taints") or ()]


def test_a_node_is_drained_checked_and_free_again() -> None:
    api, nodes = drained(make_pod("train"), make_pod("plugin", "DaemonSet", owner="plugin"))
    assert not api.pods
    taken = api.get("/api/v1/nodes/n")
    assert is_our_cordon(taken)
    assert taken_of(taken).gpus == {"nvidia.com/gpu": "8"}
    assert taken_of(taken).clients == ("ns/plugin",)
    assert keys(taken) == [TAINT]
    assert nodes.clear("h", Policy()).drained
    api.pods = [make_pod("plugin-2", "DaemonSet", owner="plugin")]
    assert nodes.check("h", "image", 60.0) is None
    assert not keys(api.nodes["n"])
    assert is_our_cordon(api.get("/api/v1/nodes/n"))
    assert not nodes.unchecked
    assert nodes.give_back("h") == ""
    assert api.nodes["n"]["spec"] == {"taints": []}
    assert not any(api.nodes["n"]["metadata"].get(key) for key in ("annotations", "labels"))


@pytest.mark.parametrize(("node", "why"), [
    (make_node(unschedulable=True), CORDONED),
    ({**make_node(), "status": {"nodeInfo": {"machineID": "other"}}}, OTHER_MACHINE),
    ({**make_node(), "status": {}}, "the node is not Ready"),
    ({**make_node(), "metadata": {"name": "n", "uid": "u", "labels": {SKIP_LABEL: "true"}}},
     SKIP_LABEL),
])  # fmt: skip
def test_a_node_that_is_left_alone(node: dict[str, Any], why: str) -> None:
    api = FakeClusterApi(node, pods=[make_pod("train")])
    assert why in drain(nodes_of(api)).given_up
    assert not api.wrote


def test_a_client_that_tolerates_every_taint_keeps_the_node_in_service() -> None:
    client = make_pod("exporter", "DaemonSet")
    client["spec"]["tolerations"] = [{"operator": "Exists"}]
    api = FakeClusterApi(pods=[client])
    assert "tolerates every taint" in drain(nodes_of(api)).given_up
    assert not api.wrote


def test_a_pod_with_a_claim_leaves_before_the_plugin_that_releases_it() -> None:
    claiming = make_pod("exporter", "DaemonSet")
    claiming["spec"]["resourceClaims"] = [{"name": "all"}]
    api = FakeClusterApi(pods=[make_pod("plugin", "DaemonSet"), claiming])
    nodes = nodes_of(api)
    assert not drain(nodes).drained
    assert [pod["metadata"]["name"] for pod in api.pods] == ["plugin"]
    assert not drain(nodes).drained
    assert not api.pods
    assert drain(nodes).drained


def test_a_pod_that_came_before_the_cordon_is_evicted_too() -> None:
    api = FakeClusterApi()
    api.before_write = lambda: api.pods.append(make_pod("late")) if not api.pods else None
    assert drain(nodes_of(api)).evicted == 1


def test_a_node_that_offers_no_gpu_for_a_moment_is_waited_for() -> None:
    api = FakeClusterApi(make_node(gpus={}))
    nodes = nodes_of(api)
    assert drain(nodes) == Round(reasons=[NODE_OFFERS_NO_GPU])
    nodes.goes_back = True  # the change before the roll-back may have removed them
    assert drain(nodes).drained


def test_a_webhook_that_rewrites_the_annotation_keeps_the_node_from_its_drain() -> None:
    api = FakeClusterApi(pods=[make_pod("train")])
    api.spoils = lambda node: node["metadata"]["annotations"].update({UPGRADE_ANNOTATION: "mine"})
    nodes = nodes_of(api)
    assert drain(nodes).given_up == NOT_KEPT_TEXT
    assert api.pods
    api.spoils = lambda node: None
    assert nodes.give_back("h") == ""


def test_what_the_api_refuses_is_the_reason_of_its_node_alone() -> None:
    api = FakeClusterApi(make_node("n"), make_node("m"))
    nodes = nodes_of(api)
    nodes.nodes = {"h": "n", "g": "m"}
    api.problems["/nodes/n"] = REFUSED
    found = nodes.drain({"h": Policy(), "g": Policy()})
    assert (found["h"].drained, found["g"].drained) == (False, True)
    assert "403 no" in found["h"].reasons[0]


@pytest.mark.parametrize("again", [False, True])
def test_a_node_that_a_user_uncordons_is_theirs(again: bool) -> None:
    """This holds for the next process too, and even if the user cordons the node again."""
    api, nodes = drained()
    api.uncordon()
    if again:
        api.cordon()
    for each in (nodes, nodes_of(api)):
        assert drain(each).given_up == UNCORDONED
        assert each.clear("h", Policy()).given_up == UNCORDONED
        assert each.check("h", "image", 0.0) is None
        assert UNCORDONED in each.unchecked["h"]
    assert nodes.give_back("h") == (STAYS_CORDONED if again else "")
    assert bool(api.nodes["n"]["spec"].get("unschedulable")) is again
    assert not api.nodes["n"]["metadata"]["annotations"]
    assert not keys(api.nodes["n"])


def test_a_user_who_removes_everything_is_not_overruled() -> None:
    api, nodes = drained()
    api.uncordon()
    api.user("n", {"metadata": {"annotations": {UPGRADE_ANNOTATION: None}}})
    assert drain(nodes).given_up == UNCORDONED
    assert not api.nodes["n"]["spec"].get("unschedulable")


def test_a_users_cordon_beside_ours_stays() -> None:
    api = FakeClusterApi()
    nodes = nodes_of(api)
    drain(nodes)
    api.user("n", {"spec": {"unschedulable": True}})
    assert nodes.clear("h", Policy()).drained
    assert nodes.give_back("h") == STAYS_CORDONED
    assert api.nodes["n"]["spec"]["unschedulable"]


def test_values_of_others_stay() -> None:
    node = make_node()
    node["metadata"]["labels"] = {UNMANAGED: "true"}
    api = FakeClusterApi(node)
    nodes = nodes_of(api)
    assert drain(nodes).drained
    nodes.give_back("h")
    assert api.nodes["n"]["metadata"]["labels"] == {UNMANAGED: "true"}


def test_a_node_that_an_earlier_run_left_is_taken_over() -> None:
    api, _ = drained()
    api.nodes["n"]["status"]["allocatable"] = {}
    nodes = nodes_of(api, "run-2")
    assert nodes.look().ours == {"h": RUN}
    assert drain(nodes).drained
    assert taken_of(api.nodes["n"]).run == "run-2"
    assert taken_of(api.nodes["n"]).gpus == {"nvidia.com/gpu": "8"}
    assert "offers less" in nodes.check("h", "image", 0.0)


def test_a_pod_that_appears_after_the_drain_stops_the_change() -> None:
    api, nodes = drained()
    api.pods = [make_pod("late"), make_pod("plugin", "DaemonSet")]
    assert nodes.clear("h", Policy()) == Round(reasons=["ns/late", "ns/plugin"])
    assert len(api.pods) == 2


@pytest.mark.parametrize(("spoil", "said"), [
    (lambda api: api.pods.clear(), "pods that are not Ready on the node: ns/plugin"),
    (lambda api: api.nodes["n"]["status"].update(allocatable={"nvidia.com/gpu": "7"}),
     "the node offers less: nvidia.com/gpu: 7 of 8"),
    (lambda api: api.nodes["n"]["status"].update(conditions=[]), "the node is not Ready"),
    (lambda api: api.problems.update({"default/pods": REFUSED}),
     "a pod with nvidia.com/gpu is refused: no"),
])  # fmt: skip
def test_why_a_changed_node_is_not_returned(spoil: Any, said: str) -> None:
    plugin = make_pod("plugin", "DaemonSet", owner="plugin")
    broken = make_pod("exporter", "DaemonSet", owner="exporter", ready=False)
    api, nodes = drained(plugin, broken)
    api.pods = [plugin]  # the other was not Ready before
    spoil(api)
    assert nodes.check("h", "image", 0.0) == said


def test_a_node_without_gpus_is_not_said_to_be_checked() -> None:
    api = FakeClusterApi(make_node(gpus={}))
    nodes = ClusterNodes(cast(ClusterApi, api), RUN, {"h": "n"})
    assert drain(nodes).drained
    assert nodes.check("h", "image", 0.0) is None
    assert "offers no GPU" in nodes.unchecked["h"]


def test_a_roll_back_takes_a_node_without_its_plugin() -> None:
    api = FakeClusterApi(make_node(gpus={}))
    nodes = nodes_of(api)
    nodes.goes_back = True
    assert drain(nodes).drained
    assert nodes.check("h", "image", 0.0) is None
    nodes.goes_back = False
    assert nodes.check("h", "image", 0.0) == NODE_OFFERS_NO_GPU


@pytest.mark.parametrize("problem", [AWAY, LOST])
def test_an_api_that_is_away_says_nothing_of_the_host(problem: ClusterProblem) -> None:
    api, nodes = drained()
    api.problem = problem
    for ask in (
        lambda: nodes.check("h", "image", 0.0),
        lambda: nodes.clear("h", Policy()),
        lambda: nodes.give_back("h"),
        lambda: drain(nodes),
    ):
        with pytest.raises(ClusterProblem):
            ask()


def test_a_node_that_is_gone() -> None:
    api, nodes = drained()
    del api.nodes["n"]
    assert drain(nodes).given_up == GONE
    assert nodes.clear("h", Policy()).given_up == GONE
    assert nodes.check("h", "image", 0.0) is None
    assert GONE in nodes.unchecked["h"]
    nodes.leave_behind("h", "why")
    assert nodes.give_back("h") == GONE


def test_a_machine_that_took_the_name_is_neither_changed_nor_kept() -> None:
    api, nodes = drained()
    api.nodes["n"]["status"]["nodeInfo"]["machineID"] = "other"
    assert drain(nodes).given_up == OTHER_MACHINE
    assert nodes.clear("h", Policy()).given_up == OTHER_MACHINE
    assert nodes.give_back("h") == OTHER_MACHINE
    assert not api.nodes["n"]["spec"].get("unschedulable")


def test_a_node_is_left_behind_with_the_reason() -> None:
    api, nodes = drained()
    nodes.leave_behind("h", "x" * 2000)
    node = api.get("/api/v1/nodes/n")
    assert node["metadata"]["annotations"][FAILED] == "x" * 1000
    assert keys(node) == [TAINT]
    assert is_our_cordon(node)
    wrote = len(api.wrote)
    nodes_of(api).leave_behind("h", "why")
    assert len(api.wrote) == wrote
    assert nodes_of(api, "run-2").look().behind == ["n"]
    nodes.give_back("h")
    assert not api.nodes["n"]["metadata"]["annotations"]


def test_a_node_that_a_user_took_back_is_not_left_behind() -> None:
    api, nodes = drained()
    api.uncordon()
    nodes.leave_behind("h", "why")
    assert not api.nodes["n"]["metadata"]["annotations"]
    assert not keys(api.nodes["n"])


def test_nodes_that_are_not_ready_are_away() -> None:
    nodes = ("n", "other", "foreign")
    api = FakeClusterApi(*({**make_node(name), "status": {}} for name in nodes))
    found = ClusterNodes(cast(ClusterApi, api), RUN, {"h": "n"}, ["other"])
    assert found.look().away == ["n", "other"]


def test_a_taint_that_came_back_is_seen() -> None:
    taint = {"key": TAINT, "value": RUN, "effect": "NoSchedule"}
    nodes = nodes_of(FakeClusterApi(make_node(taints=[taint])))
    assert nodes.look().ours == {"h": ""}
    nodes.give_back("h")
    assert nodes.look().ours == {}


def test_a_run_that_ends_looks_at_no_further_node() -> None:
    api = FakeClusterApi()
    nodes = nodes_of(api)
    nodes.is_aborted = lambda: True
    assert nodes.drain({"h": Policy()}) == {}
    assert not api.wrote


@pytest.mark.parametrize("text", ["", "[]", "{", "7", '{"run": 7, "gpus": [], "clients": {}}'])
def test_an_annotation_that_cannot_be_used_is_as_none(text: str) -> None:
    """The kubelet of a node can write any text into the annotation."""
    node = make_node()
    node["metadata"]["annotations"] = {UPGRADE_ANNOTATION: text}
    assert (taken_of(node).run, taken_of(node).gpus, taken_of(node).clients) == ("", {}, ())


MIXED = ({"nvidia.com/mig-1g.10gb": 7, "nvidia.com/gpu": 1}, {"nvidia.com/gpu": 8})


BOTH = ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"]


@pytest.mark.parametrize(
    ("offered", "asks"),
    [
        ({"nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu": "1"}, BOTH),
        ({"nvidia.com/mig-1g.10gb": "14", "nvidia.com/gpu": "2", "nvidia.com/gpumem": "80"}, BOTH),
        ({"nvidia.com/gpu.shared": "32", "nvidia.com/mig-3g.40gb": "0"}, ["nvidia.com/gpu.shared"]),
        ({"nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu": "2"}, []),
        ({"nvidia.com/mig-1g.10gb": "7"}, []),
        ({"nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu": "1", "nvidia.com/mig-3g.40gb": "1"}, []),
        ({"nvidia.com/gpu": "1Ki"}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_after_a_change_of_its_layout_a_node_offers_what_it_gives(
    offered: dict[str, str], asks: list[str]
) -> None:
    """Fewer whole GPUs are wanted then, and a pod runs with each kind that is there."""
    api, nodes = drained(make_pod("train"))
    api.nodes["n"]["status"]["allocatable"] = offered
    problem = nodes.check("h", "image", 60.0 if asks else 0.0, MIXED)
    assert (problem is None) == bool(asks), problem
    limits = [each["spec"]["containers"][0]["resources"]["limits"] for each in api.created]
    assert limits == [{resource: "1"} for resource in asks]


def test_devices_that_pods_of_the_node_hold_are_not_tried() -> None:
    api, nodes = drained(make_pod("train"))
    monitor = make_pod("monitor", "DaemonSet")
    monitor["spec"]["containers"] = [{"resources": {"limits": {"nvidia.com/mig-3g.40gb": "1"}}}]
    api.pods = [monitor]
    offered = {"nvidia.com/mig-1g.10gb": "4", "nvidia.com/mig-3g.40gb": "1"}
    api.nodes["n"]["status"]["allocatable"] = offered
    wanted = {name: int(count) for name, count in offered.items()}
    assert nodes.check("h", "image", 60.0, (wanted,)) is None
    limits = [each["spec"]["containers"][0]["resources"]["limits"] for each in api.created]
    assert limits == [{"nvidia.com/mig-1g.10gb": "1"}]


def test_a_node_of_mig_devices_alone_is_checked_with_one() -> None:
    api, nodes = drained(make_pod("train"))
    api.nodes["n"]["status"]["allocatable"] = {"nvidia.com/mig-1g.10gb": "7"}
    assert nodes.check("h", "image", 60.0, ({"nvidia.com/mig-1g.10gb": 7},)) is None
    [created] = api.created
    assert created["spec"]["containers"][0]["resources"] == {
        "limits": {"nvidia.com/mig-1g.10gb": "1"}
    }
