"""When the GPU Operator counts as done, by what the real one wrote.

The captures are of the operator v26.7.0, run outside of a control plane of `gpufleet sandbox
cluster up` with its chart: its ClusterPolicies and DaemonSets, without what is not read.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpufleet.helm.chart_choice import load_charts
from gpufleet.helm.operands import operand_findings, operand_wait, owned
from gpufleet.helm.release import Operands, OperandWait
from gpufleet.kube.facts import ClusterPolicy, ReleaseRef, Workload
from gpufleet.kube.parse import parse_cluster_policy, parse_workload
from tests.unit.gpu_stack.gpu_clusters import node

CAPTURE = Path(__file__).parent / "captures" / "gpu-operator-v26.7.0.json"
CASES: dict[str, Any] = json.loads(CAPTURE.read_text())
OURS = ReleaseRef("gpu-operator", "gpu-operator")
PLUGIN, VALIDATOR = "nvidia-device-plugin-daemonset", "nvidia-operator-validator"
GPU_NODES = ("gpu-1", "gpu-2", "gpu-3")
EXPECTED = Operands(load_charts().operands, {PLUGIN: GPU_NODES, VALIDATOR: GPU_NODES})
LABELS = {f"nvidia.com/gpu.deploy.{part}": "true" for part in ("device-plugin", "driver")}
NODES = [node(name, LABELS) for name in GPU_NODES]


def policies(case: str) -> list[ClusterPolicy]:
    return [parse_cluster_policy(item) for item in CASES[case]["policies"]]


def operands(case: str) -> list[Workload]:
    made = [parse_workload("DaemonSet", item) for item in CASES[case]["daemonsets"]]
    return owned(EXPECTED, OURS, made)


def test_a_daemonset_elsewhere_is_none_of_the_operators_whatever_it_says() -> None:
    first, *_ = operands("ready")
    assert owned(EXPECTED, OURS, [replace(first, namespace="tenant")]) == []


def wait(case: str, **changed: Any) -> OperandWait:
    """What is waited for in a captured case. `changed`: fields of our policy that are otherwise."""
    found = [
        replace(policy, **changed) if policy.release == OURS else policy
        for policy in policies(case)
    ]
    return operand_wait(EXPECTED, OURS, found, operands(case), NODES)


def test_ready_with_a_pod_on_every_node_is_done() -> None:
    assert len(operands("ready")) == 6
    assert not wait("ready")
    assert operand_findings(EXPECTED, OURS, policies("ready")) == []


def test_what_is_not_ready_is_named() -> None:
    assert wait("operand-not-ready").lines == [
        "ClusterPolicy cluster-policy is notReady: ClusterPolicy is not ready; states not ready: "
        "[state-device-plugin]",
        f"DaemonSet {PLUGIN}: 1 of 3 pods are updated",
    ]


def test_an_operator_that_cannot_work_says_why() -> None:
    first, *_ = wait("reconcile-failed").lines
    assert first == (
        "ClusterPolicy cluster-policy is notReady: failed to retrieve GPU node OS info: unable to "
        "retrieve OS name from label feature.node.kubernetes.io/system-os_release.ID"
    )


def test_ready_without_pods_is_not_done_where_nodes_have_gpus() -> None:
    """The operator counts a DaemonSet that wants no pods as ready."""
    found = wait("no-gpu-nodes")
    assert [entry.workload.name for entry in found.unready] == [PLUGIN, VALIDATOR]
    assert (
        "none of the 3 nodes has the label nvidia.com/gpu.deploy.operator-validator=true"
        in (found.lines[1])
    )


def test_ready_without_any_gpu_is_done_and_reported() -> None:
    nothing = Operands(EXPECTED.known, {})
    case = policies("no-gpu-nodes")
    assert not operand_wait(nothing, OURS, case, operands("no-gpu-nodes"), NODES)
    (reported,) = operand_findings(nothing, OURS, case)
    assert (reported.code, "No GPU node found" in reported.message) == ("GF883", True)


def test_ready_without_labels_is_waited_for() -> None:
    assert wait("no-nfd-labels").policy == (
        "ClusterPolicy cluster-policy is ready with nothing to do: No NFD labels found"
    )


def test_an_ignored_policy_is_reported_with_the_oldest() -> None:
    """It writes no state for the younger one."""
    both = [replace(policy, release=None) for policy in policies("two-policies")]
    assert {policy.name: policy.state for policy in both} == {
        "cluster-policy": "ready",
        "another": "",
    }
    ours = [replace(policy, release=OURS if policy.name == "another" else None) for policy in both]
    said = operand_wait(EXPECTED, OURS, ours, operands("ready"), NODES).policy
    assert said.startswith("ClusterPolicy another: the operator has not set its state yet")
    assert said.endswith(
        "reconciles only the oldest ClusterPolicy, and there is also cluster-policy"
    )


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("", "the operator has not set its state yet"),
        ("ignored", "is ignored"),
        ("notReady", "is notReady"),
    ],
)
def test_states_without_conditions_as_of_old_operators(state: str, said: str) -> None:
    assert said in wait("ready", state=state, reason="", message="").policy


def test_operands_of_the_chart_before_are_not_taken_for_new_ones() -> None:
    labels = {"labels": {"helm.sh/chart": "gpu-operator-v26.8.0"}}
    assert wait("ready", spec={"daemonsets": labels}).lines == [
        f"DaemonSet {name}: not updated to gpu-operator-v26.8.0 yet" for name in (PLUGIN, VALIDATOR)
    ]
    assert not wait("ready", spec={})  # before v22.9.2 operands have no such label


def test_a_daemonset_that_is_not_there_is_waited_for() -> None:
    left = [work for work in operands("ready") if work.name != VALIDATOR]
    found = operand_wait(EXPECTED, OURS, policies("ready"), left, NODES)
    assert found.lines == [f"DaemonSet {VALIDATOR}: not created yet"]


def test_a_missing_crd_and_a_missing_policy_are_reported() -> None:
    assert operand_wait(EXPECTED, OURS, None, [], NODES).lines == [
        "the CRD clusterpolicies.nvidia.com of its ClusterPolicy is missing"
    ]
    nothing = operand_wait(EXPECTED, OURS, [], [], NODES)
    assert nothing.no_policy
    assert nothing.lines == ["the ClusterPolicy of release gpu-operator/gpu-operator is missing"]
