"""When the GPU Operator counts as ready, on objects that the real operator wrote.

The captures are ClusterPolicies and DaemonSets of operator v26.7.0, reduced to the fields that
gpufleet reads. The operator ran with its chart against a control plane of `gpufleet sandbox cluster
up`, outside of the cluster.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.helm.chart_choice import load_charts
from gpufleet.helm.readiness import find_notes, find_unready
from gpufleet.helm.release import ChartSource, Operands, Readiness, Release
from gpufleet.kube.facts import (
    ClusterFacts,
    ClusterNode,
    ClusterPolicy,
    ReleaseRef,
    ServerVersion,
    Workload,
)
from gpufleet.kube.parse import parse_cluster_policy, parse_workload
from tests.unit.gpu_stack.gpu_clusters import node

pytestmark = pytest.mark.claim(
    "The ClusterPolicy and DaemonSets are read as the real operator v26.7.0 wrote them.",
    level=1,
)

CAPTURE = Path(__file__).parent / "captures" / "gpu-operator-v26.7.0.json"
CASES: dict[str, Any] = json.loads(CAPTURE.read_text())
OURS = ReleaseRef("gpu-operator", "gpu-operator")
PLUGIN, VALIDATOR = "nvidia-device-plugin-daemonset", "nvidia-operator-validator"
GPU_NODES = ("gpu-1", "gpu-2", "gpu-3")
EXPECTED = Operands(load_charts().operands, {PLUGIN: GPU_NODES, VALIDATOR: GPU_NODES})
LABELS = {f"nvidia.com/gpu.deploy.{part}": "true" for part in ("device-plugin", "driver")}
NODES = [node(name, LABELS) for name in GPU_NODES]


def operands(case: str) -> list[Workload]:
    return [parse_workload("DaemonSet", item) for item in CASES[case]["daemonsets"]]


def policies(case: str) -> list[ClusterPolicy]:
    return [parse_cluster_policy(item) for item in CASES[case]["policies"]]


def cluster(
    policies: list[ClusterPolicy], operands: list[Workload], nodes: list[ClusterNode] = NODES
) -> ClusterFacts:
    return ClusterFacts(
        "test", ServerVersion(1, 36), nodes=tuple(nodes), workloads=tuple(operands),
        cluster_policies=tuple(policies),
    )  # fmt: skip


def released(expected: Operands = EXPECTED) -> Release:
    source, ready = ChartSource("repository", ""), Readiness(operands=expected)
    return Release(OURS.name, OURS.namespace, "gpu-operator", "v26.7.0", source, ready=ready)


def lines(facts: ClusterFacts, expected: Operands = EXPECTED) -> list[str]:
    found = find_unready(released(expected), facts)
    assert all(part.operand for part in found)
    return [str(part) for part in found]


def notes(facts: ClusterFacts, expected: Operands = EXPECTED) -> list[str]:
    return [finding.code for finding in find_notes(released(expected), facts)]


def wait(case: str, **changed: Any) -> list[str]:
    """The parts that a captured case waits for. `changed`: changes of our ClusterPolicy."""
    found = [
        replace(policy, **changed) if policy.release == OURS else policy
        for policy in policies(case)
    ]
    return lines(cluster(found, operands(case)))


def test_a_daemonset_elsewhere_is_none_of_the_operators_whatever_it_says() -> None:
    elsewhere = [replace(work, namespace="tenant") for work in operands("ready")]
    assert lines(cluster(policies("ready"), elsewhere)) == [
        f"DaemonSet {name}: not created yet" for name in (PLUGIN, VALIDATOR)
    ]


def test_ready_with_a_pod_on_every_node_is_done() -> None:
    assert wait("ready") == []
    labels = {**LABELS, "nvidia.com/gpu.deploy.operator-validator": "true"}
    nodes = [node(name, labels) for name in GPU_NODES]
    assert notes(cluster(policies("ready"), operands("ready"), nodes)) == []
    assert notes(cluster(policies("ready"), operands("ready"))) == ["GF809"]


def test_what_is_not_ready_is_named() -> None:
    assert wait("operand-not-ready") == [
        "ClusterPolicy cluster-policy: notReady: ClusterPolicy is not ready; states not ready: "
        "[state-device-plugin]",
        f"DaemonSet {PLUGIN}: 1 of 3 pods are updated",
    ]


def test_an_operator_that_cannot_work_says_why() -> None:
    first, *_ = wait("reconcile-failed")
    assert "failed to retrieve GPU node OS info: unable to retrieve OS name from label" in first


def test_ready_without_pods_is_not_done_where_nodes_have_gpus() -> None:
    """The operator counts a DaemonSet that wants no pods as ready."""
    first, second = wait("no-gpu-nodes")
    assert (PLUGIN in first, VALIDATOR in second) == (True, True)
    assert (
        "none of the 3 nodes has the label nvidia.com/gpu.deploy.operator-validator=true" in second
    )


def test_ready_without_any_gpu_is_done_and_reported() -> None:
    nothing = Operands(EXPECTED.known, {})
    facts = cluster(policies("no-gpu-nodes"), operands("no-gpu-nodes"))
    assert lines(facts, nothing) == []
    assert notes(facts, nothing) == ["GF883"]


def test_ready_without_labels_is_waited_for() -> None:
    first, *_ = wait("no-nfd-labels")
    assert first == ("ClusterPolicy cluster-policy: ready with nothing to do: No NFD labels found")


def test_an_ignored_policy_is_reported_with_the_oldest() -> None:
    """The operator writes no state for the younger policy."""
    ours = [
        replace(policy, release=OURS if policy.name == "another" else None)
        for policy in policies("two-policies")
    ]
    first, *_ = lines(cluster(ours, operands("ready")))
    assert first == (
        "ClusterPolicy another: it is ignored: the operator reconciles only the oldest, and there "
        "is cluster-policy"
    )


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("", "the operator has not set its state yet"),
        ("ignored", "ignored"),
        ("notReady", "notReady"),
    ],
)
def test_states_without_conditions_as_of_old_operators(state: str, said: str) -> None:
    assert wait("ready", state=state, reason="", message="") == [
        f"ClusterPolicy cluster-policy: {said}"
    ]


def test_operands_of_the_chart_before_are_not_taken_for_new_ones() -> None:
    labels = {"labels": {"helm.sh/chart": "gpu-operator-v26.8.0"}}
    assert wait("ready", spec={"daemonsets": labels}) == [
        f"DaemonSet {name}: not updated to gpu-operator-v26.8.0 yet" for name in (PLUGIN, VALIDATOR)
    ]
    assert wait("ready", spec={}) == []  # before v22.9.2 operands have no such label


def test_a_daemonset_that_is_not_there_is_waited_for() -> None:
    left = [work for work in operands("ready") if work.name != VALIDATOR]
    assert lines(cluster(policies("ready"), left)) == [f"DaemonSet {VALIDATOR}: not created yet"]


def test_a_missing_policy_is_reported() -> None:
    (found,) = find_unready(released(), cluster([], []))
    assert found.missing
    assert str(found) == "the ClusterPolicy of release gpu-operator/gpu-operator: it is missing"
