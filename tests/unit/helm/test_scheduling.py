"""The nodes that match a DaemonSet, and why none does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.helm.readiness import not_offering, unready, without_pods
from gpufleet.helm.release import Readiness
from gpufleet.helm.scheduling import fitting, why_none
from gpufleet.kube.facts import ClusterNode, Placement, Taint, Workload

PRESENT = {"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}
VENDOR = {"key": "feature.node.kubernetes.io/pci-10de.present", "operator": "Exists"}


def node(name: str, labels: dict[str, str] | None = None, *taints: Taint) -> ClusterNode:
    return ClusterNode(name, labels or {}, taints, {}, {})


def term(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


PLAIN = node("plain")
GPU = node("gpu", {"nvidia.com/gpu.present": "true", "gen": "8"})
TAINTED = node("tainted", {"nvidia.com/gpu.present": "true"}, Taint("gpu", "NoSchedule", "a"))
FULL = node("full", {}, Taint("node.kubernetes.io/disk-pressure", "NoSchedule"))
SOFT = node("soft", {}, Taint("any", "PreferNoSchedule"))
ALL = [PLAIN, GPU, TAINTED, FULL, SOFT]


@pytest.mark.parametrize(
    ("placement", "names"),
    [
        (Placement(), "plain gpu full soft"),
        (Placement({"nvidia.com/gpu.present": "true"}), "gpu"),
        (Placement(terms=(term(PRESENT), term(VENDOR))), "gpu"),
        (Placement(terms=(term(PRESENT, VENDOR),)), ""),
        (Placement(terms=({},)), ""),
        (Placement(terms=(term({"key": "gen", "operator": "Gt", "values": ["7"]}),)), "gpu"),
        (Placement(terms=(term({"key": "gen", "operator": "Lt", "values": ["8"]}),)), ""),
        (Placement(terms=(term({"key": "gen", "operator": "DoesNotExist"}),)), "plain full soft"),
        (Placement(terms=(term({"key": "gen", "operator": "NotIn", "values": ["8"]}),)),
         "plain full soft"),
        (Placement(terms=({"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["soft"]}]},)), "soft"),
        (Placement({"nvidia.com/gpu.present": "true"},
                   tolerations=({"key": "gpu", "operator": "Exists"},)), "gpu tainted"),
        (Placement(tolerations=({"key": "gpu", "value": "a", "effect": "NoSchedule"},)),
         "plain gpu tainted full soft"),
        (Placement(tolerations=({"key": "gpu", "value": "b"},)), "plain gpu full soft"),
        (Placement(tolerations=({"key": "gpu", "value": "a", "effect": "NoExecute"},)),
         "plain gpu full soft"),
        (Placement(tolerations=({"operator": "Exists"},)), "plain gpu tainted full soft"),
    ],
)  # fmt: skip
def test_nodes_that_fit(placement: Placement, names: str) -> None:
    assert [found.name for found in fitting(placement, ALL)] == names.split()


@pytest.mark.parametrize(
    ("placement", "nodes", "why"),
    [
        (Placement({"a": "b"}), [], "the cluster has no nodes"),
        (Placement({"a": "b", "c": "d"}), [PLAIN],
         "the only node does not have the label a=b and c=d"),
        (Placement(terms=(term(PRESENT), term(VENDOR))), [PLAIN, FULL],
         "none of the 2 nodes has the label nvidia.com/gpu.present=true or "
         "feature.node.kubernetes.io/pci-10de.present"),
        (Placement({"nvidia.com/gpu.present": "true"}), [PLAIN, TAINTED],
         "the matching nodes (tainted) have taints that it does not tolerate: gpu=a:NoSchedule"),
    ],
)  # fmt: skip
def test_why_no_node_fits(placement: Placement, nodes: list[ClusterNode], why: str) -> None:
    assert why_none(placement, nodes) == why


def daemon(wanted: int, ready: int, updated: int | None = None, **more: Any) -> Workload:
    fields: dict[str, Any] = {"settled": True, "placement": Placement({"x": "y"}), **more}
    return Workload(
        kind="DaemonSet", namespace="n", name="d", images=(), host_ports=(), host_network=False,
        wanted=wanted, ready=ready, updated=wanted if updated is None else updated, old=0,
        selector={}, **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("work", "pods", "reason"),
    [
        (daemon(3, 3), {}, ""),
        (daemon(3, 3), {"d": 3}, ""),
        (daemon(4, 4), {"d": 3}, ""),
        (daemon(3, 2), {}, "2 of 3 pods are ready"),
        (daemon(3, 3, 1), {}, "1 of 3 pods are updated"),
        (daemon(2, 2), {"d": 3}, "2 desired pods, expected 3"),
        (daemon(0, 0), {"d": 3}, "0 desired pods, expected 3: the only node does not have "
                                 "the label x=y"),
        (daemon(0, 0), {}, ""),
        (daemon(0, 0), {"d": 0}, ""),
        (daemon(3, 3, settled=False), {}, "its controller has not observed the update yet"),
    ],
)  # fmt: skip
def test_when_a_daemonset_is_ready(work: Workload, pods: dict[str, int], reason: str) -> None:
    found = unready(Readiness(pods), [work], [PLAIN])
    assert [entry.reason for entry in found] == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("resource", "offered"),
    [("nvidia.com/gpu", 8), ("nvidia.com/gpu.shared", 32), ("nvidia.com/mig-1g.10gb", 7)],
)
def test_a_node_offers_gpus_of_any_kind(resource: str, offered: int) -> None:
    expected = Readiness(offering=("plain", "gone"))
    offering = replace(PLAIN, name="plain", allocatable={resource: offered})
    assert not_offering(expected, [offering]) == ["gone"]
    broken = replace(offering, allocatable={resource: 0, "rdma/hca": 4})
    assert not_offering(expected, [broken]) == ["plain", "gone"]
    assert not_offering(Readiness(), [broken]) == []


def test_only_an_unlisted_empty_daemonset_is_warned_about() -> None:
    assert [f.code for f in without_pods(Readiness(), [daemon(0, 0)], [PLAIN])] == ["GF838"]
    assert without_pods(Readiness({"d": 0}), [daemon(0, 0)], [PLAIN]) == []
    assert without_pods(Readiness(), [daemon(1, 0)], [PLAIN]) == []
    assert without_pods(Readiness(), [daemon(0, 0, settled=False)], [PLAIN]) == []
