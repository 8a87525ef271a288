"""Why pods are not ready: messages from states and events, and when to stop waiting."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.kube.pod_reasons import Reason, find_reasons, is_about


def pod(name: str = "p", phase: str = "Pending", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"phase": phase, **status}}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    container = {"name": "main", "image": "r/x:1", "restartCount": 0, "state": state, **more}
    return pod(containerStatuses=[container])


def event(kind: str, name: str, reason: str, message: str, **more: Any) -> dict[str, Any]:
    about = {"kind": kind, "name": name}
    fields = {"type": "Warning", "reason": reason, "message": message, "involvedObject": about}
    return {**fields, **more}


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [("Deployment", "web", True), ("ReplicaSet", "web-7d8f", True), ("Pod", "web-7d8f-x2", True),
     ("Pod", "web-x2", True), ("Deployment", "web-ui", False), ("ReplicaSet", "web-ui-7d8f", False),
     ("Pod", "web-ui-7d8f-x2", False), ("Job", "website", False)],
)  # fmt: skip
def test_the_events_of_a_workload(kind: str, name: str, expected: bool) -> None:
    assert is_about({"kind": kind, "name": name}, {"web"}) is expected


UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
               "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}  # fmt: skip
ENDED = {"terminated": {"exitCode": 1, "reason": "Error", "message": "no device"}}


@pytest.mark.parametrize(
    ("broken", "text", "stays"),
    [
        (waiting("ImagePullBackOff", "Back-off"),
         "the image r/x:1 cannot be pulled (ImagePullBackOff: Back-off)", True),
        (waiting("CrashLoopBackOff", "back-off", lastState=ENDED, restartCount=4),
         "container main crashes (exit code 1, Error, 4 restarts): no device", True),
        (waiting("CreateContainerConfigError", "secret x not found"),
         "container main does not start (CreateContainerConfigError: secret x not found)", True),
        (pod(conditions=[UNSCHEDULED]),
         "cannot be scheduled: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", False),
        (pod(phase="Failed", reason="Evicted", message="disk is full"), "failed: disk is full",
         False),
    ],
)  # fmt: skip
def test_the_state_of_a_pod(broken: dict[str, Any], text: str, stays: bool) -> None:
    assert find_reasons([broken], []) == [Reason(text, stays)]


@pytest.mark.parametrize(
    "healthy",
    [
        pod(phase="Running", conditions=[{"type": "Ready", "status": "True"}]),
        pod(phase="Succeeded"),
        waiting("ContainerCreating"),
        waiting("PodInitializing"),
        pod(),
    ],
)
def test_a_pod_without_a_reason(healthy: dict[str, Any]) -> None:
    assert find_reasons([healthy], []) == []


def test_an_init_container_counts_too() -> None:
    container = waiting("ErrImagePull")["status"]["containerStatuses"][0]
    assert "cannot be pulled" in str(find_reasons([pod(initContainerStatuses=[container])], [])[0])


def test_an_init_container_that_runs_is_waited_for_and_a_sidecar_is_not() -> None:
    """The first init container of the operator's validator waits for the driver, for example."""
    running = {"running": {"startedAt": "2026-11-21T08:00:00Z"}}
    statuses = [{"name": name, "state": running} for name in ("driver-validation", "proxy")]
    found = pod(initContainerStatuses=statuses)
    found["spec"] = {
        "initContainers": [{"name": "driver-validation"},
                           {"name": "proxy", "restartPolicy": "Always"}]
    }  # fmt: skip
    assert find_reasons([found], []) == [Reason("waiting for init container driver-validation")]


def test_pods_with_one_reason_are_counted() -> None:
    pods = [{**waiting("ErrImagePull", "x"), "metadata": {"name": name}} for name in "abc"]
    (found,) = find_reasons(pods, [])
    assert found.text == "3 pods: the image r/x:1 cannot be pulled (ErrImagePull: x)"


def test_the_nodes_of_a_reason_are_named() -> None:
    """pytorch/ci-infra#934: one bad node of hundreds must be found to be repaired."""
    crash = waiting("CrashLoopBackOff", "back-off", lastState=ENDED, restartCount=4)

    def texts(*nodes: str) -> list[str]:
        pods = [
            {**crash, "metadata": {"name": f"d-{node}"}, "spec": {"nodeName": node}}
            for node in nodes
        ]
        return [found.text.partition(": container main crashes")[0]
                for found in find_reasons(pods, [])]  # fmt: skip

    assert texts("gpu-7") == ["node gpu-7"]
    assert texts("gpu-9", "gpu-7") == ["2 pods (gpu-7, gpu-9)"]
    assert texts("d", "c", "b", "a") == ["4 pods (a, b, c, …)"]


@pytest.mark.parametrize(
    ("message", "stays"),
    [
        ('Error creating: admission webhook "validation.gatekeeper.sh" denied the request: '
         "[psp-host-filesystem] HostPath volume is not allowed", True),
        ('Error creating: Internal error occurred: failed calling webhook "x.example": '
         "connection refused", False),
    ],
)  # fmt: skip
def test_a_webhook_that_denies_pods_ends_the_wait(message: str, stays: bool) -> None:
    events = [event("DaemonSet", "d", "FailedCreate", message)]
    assert find_reasons([], events) == [Reason(f"DaemonSet d: {message}", stays)]


def test_what_events_add() -> None:
    refused = 'Error creating: pods "d-{}" is forbidden: violates PodSecurity "restricted:latest"'
    events = [
        event("DaemonSet", "d", "FailedCreate", refused.format("abcde")),
        event("DaemonSet", "d", "FailedCreate", refused.format("fghij")),
        event("Pod", "p", "BackOff", "before"),
        event("Pod", "p", "Unhealthy", "Readiness probe failed: 503"),
        event("Pod", "gone", "Failed", "Failed to pull image r/x:1"),
        event("Pod", "gone-too", "Unhealthy", "omitted: it may have ended in order"),
    ]
    assert [(found.text, found.stays) for found in find_reasons([pod()], events)] == [
        ("Unhealthy: Readiness probe failed: 503", False),
        ('DaemonSet d: Error creating: pods is forbidden: violates PodSecurity "restricted:latest"',
         True),
        ("Failed to pull image r/x:1", False),
    ]  # fmt: skip
