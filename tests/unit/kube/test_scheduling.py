"""The nodes that match a DaemonSet, and why none does."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.kube.facts import ClusterNode, Placement, Taint
from gpufleet.kube.scheduling import fitting_nodes, why_none

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
NO_NETWORK = node("new", {}, Taint("node.kubernetes.io/network-unavailable", "NoSchedule"))


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
    assert [found.name for found in fitting_nodes(placement, ALL)] == names.split()


def test_pods_of_the_host_network_need_no_network_of_pods() -> None:
    assert not fitting_nodes(Placement(), [NO_NETWORK])
    assert fitting_nodes(Placement(host_network=True), [NO_NETWORK]) == [NO_NETWORK]
    assert not fitting_nodes(Placement(host_network=True), [TAINTED])


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
