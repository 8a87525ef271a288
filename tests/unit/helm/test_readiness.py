"""A DaemonSet must have a pod on each node that is Ready and fits. Other nodes are left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.helm.plan import Controller, plan_release, with_objects
from gpufleet.helm.readiness import find_notes, find_silent, find_unready
from gpufleet.helm.release import ChartSource, HelmVersion, Readiness, Release, ReleasePlan
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.facts import (
    ClusterFacts,
    ClusterNode,
    HelmRelease,
    Placement,
    ReleaseRef,
    ServerVersion,
    Taint,
    Workload,
)
from gpufleet.kube.node_answers import parse_node

LABEL = {"x": "y"}
DOWN = "not Ready: Kubelet stopped posting node status."
EVERYTHING: Any = ({"operator": "Exists"},)


def node(name: str, **more: Any) -> ClusterNode:
    return replace(ClusterNode(name, LABEL, (), {}, {}), **more)


THREE = [node("a"), node("b"), node("c")]
NAMES = {"d": ("a", "b", "c")}


def daemon(wanted: int, ready: int, updated: int | None = None, **more: Any) -> Workload:
    fields: dict[str, Any] = {"settled": True, "placement": Placement(LABEL), **more}
    return Workload(
        kind="DaemonSet", namespace="n", name="d", images=(), host_ports=(), host_network=False,
        wanted=wanted, ready=ready, updated=wanted if updated is None else updated, old=0,
        selector={}, **fields,
    )  # fmt: skip


def released(names: Any, **more: Any) -> Release:
    ready = Readiness(names, **more)
    return Release("r", "n", "r", "1.0.0", ChartSource("repository", ""), ready=ready)


def cluster(work: Workload, nodes: list[ClusterNode]) -> ClusterFacts:
    """A cluster with a release that has this workload."""
    work = replace(work, release=ReleaseRef("n", "r"))
    record = HelmRelease("r", "n", 1, "deployed", "r", "1.0.0", "", {}, workloads=(work.ref,))
    return ClusterFacts(
        "test", ServerVersion(1, 36), nodes=tuple(nodes), workloads=(work,), releases=(record,)
    )


def reason(work: Workload, nodes: list[ClusterNode], *, names: Any = NAMES, **more: Any) -> str:
    found = find_unready(released(names, **more), cluster(work, nodes), soon=bool(more))
    return "".join(entry.reason for entry in found)


def codes(work: Workload, nodes: list[ClusterNode], names: Any = NAMES) -> dict[str, str]:
    return {f.code: f.message for f in find_notes(released(names), cluster(work, nodes))}


@pytest.mark.parametrize(
    ("work", "names", "wanted"),
    [
        (daemon(3, 3), {}, ""),
        (daemon(3, 3), NAMES, ""),
        (daemon(4, 4), NAMES, ""),
        (daemon(3, 2), {}, "2 of 3 pods are ready"),
        (daemon(3, 3, 1), {}, "1 of 3 pods are updated"),
        (daemon(2, 2), NAMES, "2 desired pods, expected 3"),
        (daemon(0, 0), NAMES, "0 desired pods, expected 3: none of the 3 nodes has the label p=q"),
        (daemon(0, 0), {}, ""),
        (daemon(0, 0), {"d": ()}, ""),
        (daemon(3, 3, settled=False), {}, "its controller has not observed the update yet"),
    ],
)
def test_when_a_daemonset_is_ready(work: Workload, names: Any, wanted: str) -> None:
    if work.wanted == 0:
        work = replace(work, placement=Placement({"p": "q"}))
    assert reason(work, THREE, names=names) == wanted


def test_a_node_that_is_not_ready_does_not_count_and_is_named() -> None:
    """helm/helm#10722, #5219: in a large fleet some node is always NotReady."""
    tainted = (Taint("node.kubernetes.io/not-ready", "NoSchedule"),)
    nodes = [*THREE[:2], node("c", down=DOWN, taints=tainted)]
    assert reason(daemon(2, 2), nodes) == ""
    assert codes(daemon(2, 2), nodes)["GF817"].endswith(f"not Ready: c ({DOWN}).")
    assert reason(daemon(3, 2), nodes) == ""  # its controller still counts the node
    assert reason(daemon(3, 1), nodes) == "1 of 2 pods are ready"
    untainted = [*THREE[:2], node("c", down=DOWN)]  # its taint follows soon
    assert reason(daemon(3, 2), untainted) == ""
    assert reason(daemon(3, 1), untainted) == "1 of 2 pods are ready"


def test_a_daemonset_that_tolerates_everything_has_a_pod_on_a_node_that_is_down() -> None:
    """The chart's node exporter is such a DaemonSet, for example."""
    tainted = (Taint("node.kubernetes.io/unreachable", "NoSchedule"),)
    nodes = [*THREE[:2], node("c", down=DOWN, taints=tainted)]
    everywhere = Placement(tolerations=EVERYTHING)
    assert reason(daemon(3, 2, placement=everywhere), nodes, names={}) == ""
    assert reason(daemon(3, 1, placement=everywhere), nodes, names={}) == "1 of 2 pods are ready"


@pytest.mark.parametrize(
    "label",
    [
        {"kubernetes.io/os": "windows"},
        {"eks.amazonaws.com/compute-type": "fargate"},
        {"type": "virtual-kubelet"},
        {"liqo.io/type": "virtual-node"},
    ],
)
def test_a_node_that_runs_no_daemonsets_does_not_count(label: dict[str, str]) -> None:
    """aws/amazon-cloudwatch-agent-operator#183: pods on such a node stay Pending for ever."""
    odd = parse_node(
        {
            "metadata": {"name": "c", "labels": {**LABEL, **label}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
    )
    nodes = [*THREE[:2], odd]
    everywhere = daemon(3, 2, placement=Placement(tolerations=EVERYTHING))
    assert reason(everywhere, nodes) == ""
    assert f"c ({odd.foreign})" in codes(everywhere, nodes)["GF809"]
    assert codes(everywhere, nodes, names={}) == {}  # no GPU node: nothing is missing there


@pytest.mark.parametrize(
    ("conditions", "meta", "down"),
    [
        ([], {}, "its kubelet has never reported"),
        ([{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "gone"}],
         {}, "not Ready: gone"),
        ([{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}], {},
         "not Ready: KubeletNotReady"),
        ([{"type": "Ready", "status": "True"}], {"deletionTimestamp": "2026-11-27T00:00:00Z"},
         "it is being deleted"),
        ([{"type": "Ready", "status": "True"}], {}, None),
    ],
)  # fmt: skip
def test_why_a_node_is_down(conditions: list[Any], meta: dict[str, str], down: str | None) -> None:
    found = parse_node({"metadata": {"name": "c", **meta}, "status": {"conditions": conditions}})
    assert found.down == down


def test_a_narrowed_selector_counts_the_nodes_that_fit_and_names_the_others() -> None:
    nodes = [node("a", labels={**LABEL, "pool": "inference"}), *THREE[1:]]
    narrow = daemon(1, 1, placement=Placement({"pool": "inference"}))
    assert reason(narrow, nodes) == ""
    message = codes(narrow, nodes)["GF809"]
    assert "b (it does not have the label pool=inference), c (" in message
    assert "a (" not in message
    affine = Placement(terms=({"matchExpressions": [{"key": "pool", "operator": "Exists"}]},))
    assert reason(daemon(1, 1, placement=affine), nodes) == ""


@pytest.mark.parametrize(
    "taint",
    [
        Taint("dedicated", "NoSchedule", "training"),
        Taint("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule", "true"),
        Taint("node.kubernetes.io/out-of-service", "NoExecute", "nodeshutdown"),
        Taint("ToBeDeletedByClusterAutoscaler", "NoSchedule", "1"),
        Taint("karpenter.sh/disrupted", "NoSchedule"),
    ],
)
def test_a_tainted_node_does_not_stop_the_others(taint: Taint) -> None:
    nodes = [*THREE[:2], node("c", taints=(taint,))]
    assert reason(daemon(2, 2), nodes) == ""
    assert f"c (its taint {taint} is not tolerated)" in codes(daemon(2, 2), nodes)["GF809"]


def test_a_node_that_was_deleted_is_not_waited_for() -> None:
    assert reason(daemon(2, 2), THREE[:2]) == ""
    assert codes(daemon(2, 2), THREE[:2]) == {}


def test_only_nodes_that_are_down_is_no_reason_to_fail() -> None:
    nodes = [node(name, down=DOWN) for name in "abc"]
    assert reason(daemon(0, 0), nodes) == ""
    assert set(codes(daemon(0, 0), nodes)) == {"GF817"}


def test_labels_of_this_run_are_waited_for() -> None:
    nodes = [THREE[0], node("b", labels={}), node("c", labels={"x": "off"})]
    assert reason(daemon(1, 1), nodes) == ""
    assert reason(daemon(1, 1), nodes, labels=LABEL) == "1 desired pod, expected 2"


def test_many_nodes_are_counted() -> None:
    nodes = [node(f"n{number}", down=DOWN) for number in range(40)]
    assert codes(daemon(0, 0), nodes)["GF817"].endswith(f"n9 ({DOWN}) and 30 more.")


@pytest.mark.parametrize(
    ("resource", "offered"),
    [("nvidia.com/gpu", 8), ("nvidia.com/gpu.shared", 32), ("nvidia.com/mig-1g.10gb", 7)],
)
def test_a_node_with_a_pod_must_offer_gpus_of_any_kind(resource: str, offered: int) -> None:
    wanted = released({"d": ("a", "b", "c", "f")}, offering=True)
    nodes = [
        node("a", allocatable={resource: offered}),
        node("b", labels={}),
        node("c", allocatable={resource: 0, "rdma/hca": 4}),
        node("e"),
        node("f", down=DOWN),
    ]
    narrow = daemon(1, 1, placement=Placement({"x": "y"}))
    assert find_silent(wanted, cluster(narrow, nodes)) == (["c"], True)
    assert find_silent(wanted, cluster(narrow, nodes[1:])) == (["c"], False)
    assert find_silent(released(NAMES), cluster(narrow, nodes)) == ([], False)


def test_the_plan_of_a_converged_release_names_nodes_that_offer_nothing() -> None:
    wanted = released({"d": ("a",)}, offering=True)
    controller = Controller("me", 0, HelmVersion(3, 22))
    for offered, expected in ((8, []), (0, ["GF888"])):
        facts = cluster(daemon(1, 1), [node("a", allocatable={"nvidia.com/gpu": offered})])
        plan = plan_release(wanted, facts, controller, helm_catalog())
        assert (plan.action, [each.code for each in plan.findings]) == ("no-op", expected)


def test_only_an_unlisted_empty_daemonset_is_warned_about() -> None:
    assert set(codes(daemon(0, 0), [], names={})) == {"GF838"}
    assert codes(daemon(0, 0), [], names={"d": ()}) == {}
    assert codes(daemon(1, 0), THREE, names={}) == {}
    assert codes(daemon(0, 0, settled=False), [], names={}) == {}


def planned(selector: dict[str, str], nodes: list[ClusterNode]) -> dict[str, str]:
    """Findings of the plan of a release whose chart renders a DaemonSet with that selector."""
    release = Release(
        "r", "n", "r", "1.0.0", ChartSource("repository", ""), ready=Readiness(NAMES, labels=LABEL)
    )
    template = {"spec": {"nodeSelector": selector}}
    rendered = {"kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"template": template}}
    facts = ClusterFacts("test", ServerVersion(1, 36), nodes=tuple(nodes))
    plan = with_objects(ReleasePlan(release, "install", "", None), [rendered], facts)
    return {finding.code: finding.message for finding in plan.findings}


def test_a_plan_names_left_out_nodes_before_anything_is_changed() -> None:
    nodes = [node("a", labels={"pool": "inference"}), node("b"), node("c", down=DOWN)]
    found = planned({"pool": "inference"}, nodes)
    assert set(found) == {"GF817", "GF809"}
    assert "b (it does not have the label pool=inference)." in found["GF809"]
    assert planned({"x": "y"}, [node("a", labels={})]) == {}  # this run labels it
    assert set(planned({"pool": "none"}, nodes)) == {"GF817", "GF838"}
    assert set(planned({"pool": "none"}, [nodes[2]])) == {"GF817"}
