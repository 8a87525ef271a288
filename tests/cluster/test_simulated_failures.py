"""Simulated pods and nodes fail only if a label or an annotation requests it."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS, Pods, phases, pod


@pytest.fixture
def core(simulated: Cluster) -> Any:
    return client.CoreV1Api(simulated.api)


def test_a_held_pod_stays_pending_until_it_is_released(
    core: Any, namespace: str, pods_of: Pods
) -> None:
    held = pod({"how": "held", "sandbox.gpufleet/held": "true"}, name="held")
    core.create_namespaced_pod(namespace, held)
    core.create_namespaced_pod(namespace, pod({"how": "runs"}, name="runs"))
    assert wait_until(lambda: phases(pods_of("how=runs")) == ["Running"], SECONDS)
    assert wait_until(lambda: bool(pods_of("how=held")[0].spec.node_name), SECONDS)
    assert phases(pods_of("how=held")) == ["Pending"]
    released = {"metadata": {"labels": {"sandbox.gpufleet/held": None}}}
    core.patch_namespaced_pod("held", namespace, released)
    assert wait_until(lambda: phases(pods_of("how=held")) == ["Running"], SECONDS)


def test_a_crashing_pod_is_restarted_and_never_ready(
    core: Any, namespace: str, pods_of: Pods
) -> None:
    annotations = {"sandbox.gpufleet/crash": "137"}
    core.create_namespaced_pod(
        namespace, pod({"how": "crashes"}, name="one", annotations=annotations)
    )
    assert wait_until(lambda: phases(pods_of("how=crashes")) == ["Running"], SECONDS)
    ((status,),) = (each.status.container_statuses for each in pods_of("how=crashes"))
    assert status.state.waiting.reason == "CrashLoopBackOff"
    assert status.last_state.terminated.exit_code == 137
    assert status.restart_count > 0
    assert not status.ready


def test_a_failing_pod_runs_and_ends_with_its_status(
    core: Any, namespace: str, pods_of: Pods
) -> None:
    annotations = {"sandbox.gpufleet/fail": "3"}
    core.create_namespaced_pod(
        namespace, pod({"how": "fails"}, name="one", annotations=annotations)
    )
    assert wait_until(lambda: phases(pods_of("how=fails")) == ["Failed"], SECONDS)
    ((status,),) = (each.status.container_statuses for each in pods_of("how=fails"))
    assert status.state.terminated.exit_code == 3


def test_a_node_is_not_ready_while_its_annotation_requests_it(
    simulated: Cluster, core: Any
) -> None:
    def annotate(reason: str | None) -> None:
        core.patch_node(
            "gpu-3", {"metadata": {"annotations": {"sandbox.gpufleet/not-ready": reason}}}
        )

    annotate("KubeletNotReady")
    try:
        assert wait_until(lambda: simulated.ready_nodes() == {"gpu-1", "gpu-2"}, SECONDS)
        node = core.read_node("gpu-3")
        (reason,) = (each.reason for each in node.status.conditions if each.type == "Ready")
        assert reason == "KubeletNotReady"

        def taints() -> set[str]:
            return {taint.key for taint in core.read_node("gpu-3").spec.taints or ()}

        assert wait_until(lambda: "node.kubernetes.io/not-ready" in taints(), SECONDS)
    finally:
        annotate(None)
    assert wait_until(lambda: "gpu-3" in simulated.ready_nodes(), SECONDS)
    assert wait_until(lambda: not taints(), SECONDS)
