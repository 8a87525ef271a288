"""The pod that uses a GPU of a changed node, before the node is returned to service; its image is
pulled before the node is disturbed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from gpufleet.core.visible import one_line
from gpufleet.kube.operations.api import ApiError, ClusterApi
from gpufleet.upgrade.pods import (
    CHECK_LABEL,
    Pod,
    check_pod,
    gpu_of,
    gpus_of,
    label_of,
    pull_pod,
)

POLL = 1.0  # seconds
NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MISSING = 404
STARTING = ("CreateContainer", "RunContainer", "CrashLoop", "StartError")  # the image is there
LOST = "ContainerStatusUnknown"
EVICTED = "Evicted"  # by the node, as for room on the disk that the image takes


def refusal(api: ClusterApi, node: Mapping[str, Any], image: str) -> str:
    """Why the API would refuse the pod: a quota, or a webhook; "" if it would not, or if the node
    offers no GPU. Nothing is created."""
    gpu = gpu_of(gpus_of(node))
    if not gpu:
        return ""
    try:
        api.try_create(PODS, _wanted(api, node, image, gpu))
    except ApiError as error:
        return _final(error)
    return ""


def _final(error: ApiError) -> str:
    """Why a pod is refused. Raises the error where another answer may follow."""
    if not error.is_final:
        raise error
    return one_line("; ".join(error.causes) or error.message or error.reason)


def pulled(
    api: ClusterApi,
    node: Mapping[str, Any],
    image: str,
    seconds: float,
    over_in: Callable[[float], bool],
) -> str:
    """Pull the image of that pod to the node; "" or why it cannot be pulled in so many seconds.
    Nothing is to be known of a node that offers no GPU, which no pod checks, or that has no room
    for a pod now, which it has after its drain. `over_in`: waits; whether the run ends."""
    if not gpu_of(gpus_of(node)):
        return ""
    name = node["metadata"]["name"]
    remove_pods(api, name)
    try:
        pod = api.create(PODS, pull_pod(name, image, _keys(node)))
    except ApiError as error:
        return _final(error)
    path = f"{PODS}/{pod['metadata']['name']}"
    ends = time.monotonic() + seconds
    try:
        while not over_in(POLL):
            found = api.find(path)
            if found is None:
                return "another user deleted the pod that pulls its image"
            status = found.get("status") or {}
            if status.get("reason") == EVICTED:
                return f"{image} does not stay on the node: {_said(found)}"
            if status.get("phase") == "Failed" or _has_image(status):
                return ""
            if time.monotonic() >= ends:
                return f"{image} is not on the node after {seconds:.0f} s: {_said(found)}"
        return ""
    finally:
        _delete(api, pod)


def _has_image(status: Mapping[str, Any]) -> bool:
    """Whether the image of a pod's container is known to be on the node."""
    for container in status.get("containerStatuses") or ():
        state = container.get("state") or {}
        if ended := state.get("terminated"):
            return bool(ended.get("reason") != LOST)
        waits = str((state.get("waiting") or {}).get("reason") or "")
        return "running" in state or waits.startswith(STARTING)
    return status.get("phase") in ("Running", "Succeeded")


def run_pod(
    api: ClusterApi,
    node: Mapping[str, Any],
    image: str,
    gpu: str,
    seconds: float,
    stopping: threading.Event,
) -> str:
    """Run a pod that uses a GPU; "" or why it did not end well. It is deleted."""
    remove_pods(api, node["metadata"]["name"])
    ends = time.monotonic() + seconds
    refused = "it could not be created in time"
    pod: Pod | None = None
    while pod is None and time.monotonic() < ends and not stopping.is_set():
        try:
            pod = api.create(PODS, _wanted(api, node, image, gpu))
        except ApiError as error:  # a webhook may be on its way back, as the node is
            refused = one_line(error.message or error.reason)
            stopping.wait(POLL)
    if pod is None:
        return f"a GPU pod is refused: {refused}"
    path = f"{PODS}/{pod['metadata']['name']}"
    try:
        while time.monotonic() < ends and not stopping.is_set():
            found = api.find(path)
            if found is None:
                return "another user deleted the GPU pod"
            pod = found
            phase = pod["status"].get("phase")
            if phase in ("Succeeded", "Failed"):
                return "" if phase == "Succeeded" else f"a GPU pod failed: {_said(pod)}"
            stopping.wait(POLL)
        return f"a GPU pod did not end within {seconds:.0f} s: {_said(pod)}"
    finally:
        _delete(api, pod)


def remove_pods(api: ClusterApi, node: str = "") -> None:
    """Delete the pods that a process which was killed has left: of one node, or of all. The Lease
    of the cluster keeps other runs away from theirs."""
    selector = f"{CHECK_LABEL}={label_of(node)}" if node else CHECK_LABEL
    for pod in api.list(PODS, labelSelector=selector):
        _delete(api, pod)


def _delete(api: ClusterApi, pod: Pod) -> None:
    try:
        api.delete(f"{PODS}/{pod['metadata']['name']}")
    except ApiError as error:
        if error.status != MISSING:
            raise


def _wanted(api: ClusterApi, node: Mapping[str, Any], image: str, gpu: str) -> dict[str, Any]:
    runtime = api.find("/apis/node.k8s.io/v1/runtimeclasses/nvidia")
    name = node["metadata"]["name"]
    return check_pod(name, image, gpu, "nvidia" if runtime else None, _keys(node))


def _keys(node: Mapping[str, Any]) -> list[str]:
    """Of the node's taints."""
    return [each["key"] for each in (node.get("spec") or {}).get("taints") or ()]


def _said(pod: Pod) -> str:
    """Why a pod is where it is."""
    status = pod.get("status") or {}
    texts = [status.get("reason"), status.get("message")]
    for condition in status.get("conditions") or ():
        texts += [condition.get("message")] if condition.get("status") == "False" else []
    for container in status.get("containerStatuses") or ():
        for state in (container.get("state") or {}).values():
            texts += [state.get("reason"), state.get("message")]
    return one_line("; ".join(str(each) for each in texts if each)) or str(status.get("phase"))
