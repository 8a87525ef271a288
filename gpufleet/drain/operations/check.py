"""Checks a changed node before its return: its GPUs, its device plugin, and a GPU pod, whose image
is pulled before the node is disturbed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpufleet.core.visible import one_line
from gpufleet.drain.nodes import (
    Node,
    gpu_of,
    gpus_of,
    is_node_ready,
    missing_resources,
    resources_to_try,
    taints_of,
    taken_of,
    unlike_offer,
)
from gpufleet.drain.operations.evict import of_node
from gpufleet.drain.pods import VISIBLE, Pod, count_requests, is_pod_ready, owner_name
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError

CHECK_POLL_SECONDS = 1.0  # seconds
NODE_OFFERS_NO_GPU = "the node offers no GPU now"
PODS = "/api/v1/namespaces/default/pods"
CHECK = "gpufleet/upgrade-check"  # label of our pods, and the annotation with the node's name
CHECK_CONTAINER = "check"  # name of their container
# Reasons of a container that waits although its image was pulled.
STARTING_PREFIXES = ("CreateContainer", "RunContainer", "CrashLoop", "StartError")
LOST = "ContainerStatusUnknown"
NAMED = ("ErrImage", "Image", "InvalidImage", "Registry", "Signature")  # not the node's fault
EVICTED = "Evicted"  # by the node, also for memory that its drain frees
# Source: https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/eviction/helpers.go
FILLED, FULL_DISK = "ephemeral-storage", "DiskPressure"  # by its image; before the image was pulled

Offers = Sequence[Mapping[str, int]]  # resource -> number, without replicas
OverIn = Callable[[float], bool]  # sleeps for these seconds; True if the run ends


def why_not_as_before(
    api: ClusterApi, node: Node, *, offering: bool, offers: Offers = ()
) -> str | None:
    """Why a node is not as before its cordon, or None. `offering`: it offered GPUs when the run was
    planned. Its annotation may lack them if a restart preceded the cordon. `offers`: what it must
    offer now, in one of these ways, after a change of its GPUs."""
    if not is_node_ready(node):
        return "the node is not Ready"
    taken, gpus = taken_of(node), gpus_of(node)
    pods = of_node(api, node["metadata"]["name"])
    ready = {owner_name(pod) for pod in pods if is_pod_ready(pod)}
    if lacking := [owner for owner in taken.clients if owner not in ready]:
        return f"pods that are not Ready on the node: {one_line(', '.join(lacking))}"
    if offers and gpu_of(gpus):
        unlike = unlike_offer(offers, gpus)
        return f"the node offers {one_line(unlike)}" if unlike else None
    if not offers and (gone := missing_resources(taken.gpus, gpus)):
        return f"the node offers less: {one_line(gone)}"
    return NODE_OFFERS_NO_GPU if offering and not gpu_of(gpus) else None


def why_refused(api: ClusterApi, node: Node, image: str) -> str | None:
    """Why the API would refuse the GPU pod (a quota, a webhook), or None, also if the node offers
    no GPU. Creates nothing."""
    for gpu in resources_to_try(gpus_of(node), {}):
        try:
            api.try_create(PODS, _gpu_pod(api, node, image, gpu))
        except ApiError as error:
            return _final(error)
    return None


def free_kinds(api: ClusterApi, node: Node, offered: Mapping[str, str]) -> list[str]:
    """The resources of `offered` to check a node with, whose devices its DaemonSets do not hold."""
    held = count_requests(of_node(api, node["metadata"]["name"]))
    return resources_to_try(offered, held)


def _final(error: ApiError) -> str:
    """Why a pod is refused. Raises the error if a retry may get another answer."""
    if not error.is_final:
        raise error
    return one_line("; ".join(error.causes) or error.message or error.reason)


@dataclass(frozen=True, slots=True)
class Pull:
    """The result of pulling an image to a node, and the reason for a failure.

    "image": a fault of the image or its registry, in the kubelet's words. "node": the pod is
    refused, or not started in time. "disk": the node's disk is full. "later": a drain or time may
    help, as the node has no memory, starts no further pod, or another user deleted the pod.
    """

    came: Literal["there", "image", "node", "disk", "later"] = "there"
    reason: str = ""


def pull_image(api: ClusterApi, node: Node, image: str, seconds: float, over_in: OverIn) -> Pull:
    """Pull the image of the GPU pod to a node, by a pod that does nothing. It sees no GPU, even if
    the runtime offers every GPU to all containers. It has its node from the start, because a
    scheduler might preempt other pods."""
    name = node["metadata"]["name"]
    remove_pods(api, name)
    wanted = _pod_on(node, image, command=["true"], env=[{"name": VISIBLE, "value": "void"}])
    wanted["spec"]["nodeName"] = name
    try:
        pod = api.create(PODS, wanted)
    except ApiError as error:
        return Pull("node", _final(error))
    path = f"{PODS}/{pod['metadata']['name']}"
    ends = time.monotonic() + seconds
    try:
        while not over_in(CHECK_POLL_SECONDS):
            found = api.find(path)
            if found is None:
                return Pull("later", "the pod that pulls its image was deleted")
            if ended := _pull_ended(found, image):
                return ended
            if time.monotonic() >= ends:
                why = f"{image} is not on the node after {seconds:.0f} s: {_said(found)}"
                return Pull("image" if _state_of(found)[1].startswith(NAMED) else "node", why)
        return Pull("later", "the run ends")
    finally:
        _delete(api, pod)


def _pull_ended(pod: Pod, image: str) -> Pull | None:
    """The result of a pod that pulls the image. None while it is not finished."""
    status = pod.get("status") or {}
    said, phase = str(status.get("message") or ""), status.get("phase")
    evicted = status.get("reason") == EVICTED
    if evicted and FILLED in said:
        return Pull("image", f"{image} does not stay on the node: {_said(pod)}")
    state, waits_for = _state_of(pod)
    ran = state.get("terminated", {"reason": LOST}).get("reason") != LOST or "running" in state
    unseen = not status.get("containerStatuses") and phase in ("Running", "Succeeded")
    if ran or unseen or waits_for.startswith(STARTING_PREFIXES):
        return Pull()
    if phase != "Failed":
        return None
    full = evicted and FULL_DISK in said
    return Pull("disk" if full else "later", f"{image} was not pulled: {_said(pod)}")


def _state_of(pod: Pod) -> tuple[Mapping[str, Any], str]:
    """The state of our container, as webhooks may add containers, and the reason why it waits."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    ours = [each for each in statuses if each.get("name") == CHECK_CONTAINER]
    state: Mapping[str, Any] = (ours[0].get("state") or {}) if ours else {}
    return state, str((state.get("waiting") or {}).get("reason") or "")


def run_pod(
    api: ClusterApi, node: Node, image: str, gpu: str, seconds: float, over_in: OverIn
) -> str | None:
    """Run a pod that uses a GPU, and delete it. Returns why it failed, or None."""
    remove_pods(api, node["metadata"]["name"])
    ends = time.monotonic() + seconds
    pod: Pod | None = None
    while pod is None:
        try:
            pod = api.create(PODS, _gpu_pod(api, node, image, gpu))
        except ApiError as error:  # a webhook may be unavailable while the node returns
            said = one_line(error.message or error.reason)
            if time.monotonic() >= ends or over_in(CHECK_POLL_SECONDS):
                return f"a pod with {gpu} is refused: {said}"
    path = f"{PODS}/{pod['metadata']['name']}"
    try:
        while time.monotonic() < ends and not over_in(CHECK_POLL_SECONDS):
            found = api.find(path)
            if found is None:
                return f"another user deleted the pod with {gpu}"
            pod = found
            phase = pod["status"].get("phase")
            ended = _state_of(pod)[0].get("terminated") or {}
            if phase == "Succeeded" or ended.get("exitCode") == 0:
                return None  # a container that a webhook added may run on
            if phase == "Failed" or ended:
                return f"a pod with {gpu} failed: {_said(pod)}"
        return f"a pod with {gpu} did not end within {seconds:.0f} s: {_said(pod)}"
    finally:
        _delete(api, pod)


def remove_pods(api: ClusterApi, node: str = "") -> None:
    """Delete the pods that a killed process has left, of one node or of all. The Lease of the
    cluster ensures that no other run is using them."""
    for pod in api.list(PODS, labelSelector=CHECK):
        if node in ("", (pod["metadata"].get("annotations") or {}).get(CHECK)):
            _delete(api, pod)


def _delete(api: ClusterApi, pod: Pod) -> None:
    try:
        api.delete(f"{PODS}/{pod['metadata']['name']}")
    except ApiError as error:
        if not error.is_missing:
            raise


def _gpu_pod(api: ClusterApi, node: Node, image: str, gpu: str) -> dict[str, Any]:
    """A pod that uses a GPU of a node that is out of service."""
    pod = _pod_on(node, image, resources={"limits": {gpu: "1"}})
    name = {"key": "metadata.name", "operator": "In", "values": [node["metadata"]["name"]]}
    terms = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    pod["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    }
    if api.find("/apis/node.k8s.io/v1/runtimeclasses/nvidia"):
        pod["spec"]["runtimeClassName"] = "nvidia"
    return pod


def _pod_on(node: Node, image: str, **container: Any) -> dict[str, Any]:
    """A pod whose image is pulled once, because a registry may be unavailable after the change."""
    tolerated = ["node.kubernetes.io/unschedulable", "nvidia.com/gpu"]
    tolerated += [taint["key"] for taint in taints_of(node)]
    container |= {"name": CHECK_CONTAINER, "image": image, "imagePullPolicy": "IfNotPresent"}
    return {
        "metadata": {
            "generateName": "gpufleet-upgrade-",
            "labels": {"app": "gpufleet-upgrade", CHECK: "true"},
            "annotations": {CHECK: node["metadata"]["name"]},
        },
        "spec": {
            "restartPolicy": "Never",
            "tolerations": [{"key": key, "operator": "Exists"} for key in tolerated],
            "containers": [container],
        },
    }


def _said(pod: Pod) -> str:
    """Why a pod is in its state."""
    status = pod.get("status") or {}
    texts = [status.get("reason"), status.get("message")]
    for condition in status.get("conditions") or ():
        texts += [condition.get("message")] if condition.get("status") == "False" else []
    for container in status.get("containerStatuses") or ():
        for state in (container.get("state") or {}).values():
            texts += [state.get("reason"), state.get("message")]
    return one_line("; ".join(str(each) for each in texts if each)) or str(status.get("phase"))
