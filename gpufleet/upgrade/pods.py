"""Which pods of a node leave before its driver is changed, and which are waited for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from gpufleet.core.visible import one_line

Pod = Mapping[str, Any]

STAYS = "nvidia.com/gpu-driver-upgrade-drain.skip"  # label of a pod that is not to be evicted
MIRROR = "kubernetes.io/config.mirror"  # annotation of a static pod
GPU = "nvidia.com/"  # resources
DEVICES = ("/dev", "/run/nvidia", "/var/run/nvidia", "/var/lib/kubelet/device-plugins",
           "/var/lib/kubelet/pod-resources")  # fmt: skip
RUNTIME = "nvidia"  # RuntimeClass, and the beginning of others: nvidia-cdi
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
NONE = ("", "void", "none")
ENDED = ("Succeeded", "Failed")
LABEL = 63  # characters of a label's value
CONTAINER = "check"  # name of its container
CHECK_LABEL = "gpufleet/upgrade-check"  # of the pod that checks a node, with the node's name
REPLACED = ("ReplicaSet", "ReplicationController", "StatefulSet")  # by the same pod elsewhere


@dataclass(frozen=True, slots=True)
class Leaving:
    """The pods of one node."""

    evict: tuple[Pod, ...] = ()
    waited: Mapping[str, str] = field(default_factory=dict)  # namespace/name -> why
    clients: tuple[Pod, ...] = ()  # of DaemonSets: they leave last, and return by themselves
    going: tuple[str, ...] = ()  # are being deleted

    @property
    def empty(self) -> bool:
        """Whether only clients are left."""
        return not (self.evict or self.waited or self.going)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is done with pods that are lost by an eviction. `every`: also those without a GPU."""

    every: bool = False
    jobs: str = "wait"  # or "evict"
    empty_dir: bool = False
    unmanaged: bool = False


def sort_pods(pods: Iterable[Pod], policy: Policy) -> Leaving:
    """The pods of a node, by what is done with them."""
    evict: list[Pod] = []
    waited: dict[str, str] = {}
    clients: list[Pod] = []
    going: list[str] = []
    for pod in pods:
        if (pod.get("status") or {}).get("phase") in ENDED:
            continue
        uses = uses_gpu(pod)
        if owner_of(pod) == "DaemonSet" and _labels(pod).get(STAYS) != "true":
            clients += [pod] if uses else []
        elif not uses and (not policy.every or _is_fixed(pod)):
            continue
        elif pod["metadata"].get("deletionTimestamp"):
            going.append(name_of(pod))
        elif why := _why_waited(pod, policy, uses=uses):
            waited[name_of(pod)] = why
        else:
            evict.append(pod)
    return Leaving(tuple(evict), waited, tuple(clients), tuple(going))


def _why_waited(pod: Pod, policy: Policy, *, uses: bool) -> str:
    """Why a pod is not evicted; "" if it is. `uses`: a GPU. Such a pod of an unknown
    controller, as PyTorchJob or RayCluster, may be a training run, which an eviction ends."""
    owner = owner_of(pod)
    if _labels(pod).get(STAYS) == "true":
        return f"it has the label {STAYS}=true"
    if _is_static(pod):
        return "it is a static pod of the kubelet"
    lost = owner == "Job" or (uses and owner and owner not in REPLACED)
    if lost and policy.jobs == "wait":
        return f"it is of a {one_line(owner)} (upgrade_jobs)"
    if not owner and not policy.unmanaged:
        return "it has no controller that would replace it (upgrade_evict_unmanaged)"
    if _has_empty_dir(pod) and not policy.empty_dir:
        return "it has data in an emptyDir (upgrade_evict_empty_dir)"
    return ""


def ending(pods: Iterable[Pod], policy: Policy) -> list[str]:
    """The pods that a drain evicts though their controller may not replace them, with its kind: the
    head of a RayCluster, whose eviction ends the work of other nodes too."""
    found = ((pod, owner_of(pod)) for pod in sort_pods(pods, policy).evict)
    known = ("", "Job", *REPLACED)
    return [f"{name_of(pod)} ({one_line(owner)})" for pod, owner in found if owner not in known]


def uses_gpu(pod: Pod) -> bool:
    """Whether a pod holds a GPU, or the libraries of the driver."""
    spec = pod.get("spec") or {}
    if str(spec.get("runtimeClassName")).startswith(RUNTIME) or spec.get("resourceClaims"):
        return True
    if any(_is_device((volume.get("hostPath") or {}).get("path")) for volume in _volumes(pod)):
        return True
    return any(_container_uses(each) for each in _containers(spec))


def tolerates(pod: Pod, key: str) -> bool:
    """Whether a pod may be started on a node with a taint of that key and effect NoSchedule."""
    for each in (pod.get("spec") or {}).get("tolerations") or ():
        right_key = each.get("key") in (None, "", key)
        right = right_key and each.get("effect") in (None, "", "NoSchedule")
        if right and (each.get("operator") == "Exists" or each.get("key") == key):
            return True
    return False


def owner_of(pod: Pod) -> str:
    """The kind of a pod's controller; "" without one."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner.get("kind") or "")
    return ""


def owner_name(pod: Pod) -> str:
    """The controller of a pod, with its namespace."""
    owners = pod["metadata"].get("ownerReferences") or ()
    names = [str(owner.get("name")) for owner in owners if owner.get("controller")]
    return one_line(f"{pod['metadata'].get('namespace', '')}/{names[0] if names else ''}")


def owner_id(pod: Pod) -> str:
    """The uid of a pod's controller; its own without one."""
    owners = pod["metadata"].get("ownerReferences") or ()
    found = [str(owner.get("uid")) for owner in owners if owner.get("controller")]
    return found[0] if found else str(pod["metadata"].get("uid"))


def is_pod_ready(pod: Pod) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def name_of(pod: Pod) -> str:
    return one_line(f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}")


def unplaced(pod: Pod, others: Iterable[Pod]) -> str:
    """The pod of the same controller that has no node, and why: a budget that counts it may never
    allow the eviction. "" if there is none."""
    wanted = [o.get("uid") for o in pod["metadata"].get("ownerReferences") or ()]
    for other in others:
        owners = [o.get("uid") for o in other["metadata"].get("ownerReferences") or ()]
        for condition in (other.get("status") or {}).get("conditions") or ():
            if condition.get("reason") == "Unschedulable" and set(wanted) & set(owners):
                message = one_line(str(condition.get("message") or ""))
                return f"{name_of(other)} has no node: {message}"
    return ""


def check_pod(
    node: str, image: str, resource: str, runtime: str | None, keys: Sequence[str]
) -> dict[str, Any]:
    """A pod that uses a GPU of a node that is out of service. `keys`: of the node's taints."""
    resources = {"limits": {resource: "1"}}
    return _pod_on(node, _ours(image) | {"resources": resources}, runtime, keys)


def pull_pod(node: str, image: str, keys: Sequence[str]) -> dict[str, Any]:
    """A pod that does nothing, so that its image is on a node. It sees no GPU, also where the
    runtime of all containers would offer each of them every GPU. It has its node from the
    beginning: a scheduler might end other pods to make room for it."""
    unseen = {"command": ["true"], "env": [{"name": VISIBLE, "value": "void"}]}
    pod = _pod_on(node, _ours(image) | unseen, None, keys)
    del pod["spec"]["affinity"]
    pod["spec"]["nodeName"] = node
    return pod


def _ours(image: str) -> dict[str, Any]:
    """A container. Its image is pulled once: a registry may be away after the change."""
    return {"name": CONTAINER, "image": image, "imagePullPolicy": "IfNotPresent"}


def _pod_on(
    node: str, container: Mapping[str, Any], runtime: str | None, keys: Sequence[str]
) -> dict[str, Any]:
    wanted = ["node.kubernetes.io/unschedulable", "nvidia.com/gpu", *keys]
    return {
        "metadata": {
            "generateName": "gpufleet-upgrade-",
            "labels": {"app": "gpufleet-upgrade", CHECK_LABEL: label_of(node)},
        },
        "spec": {
            "restartPolicy": "Never",
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": [node]}]}]}}},
            "tolerations": [{"key": key, "operator": "Exists"} for key in wanted],
            "containers": [container],
            **({"runtimeClassName": runtime} if runtime else {}),
        },
    }  # fmt: skip


def label_of(node: str) -> str:
    """The name of a node as the value of a label, which may be shorter."""
    if len(node) <= LABEL:
        return node
    return f"{node[:40].rstrip('.-')}-{sha256(node.encode()).hexdigest()[:16]}"


def _is_fixed(pod: Pod) -> bool:
    """Whether a pod without a GPU stays in a drain of the whole node."""
    return _is_static(pod) or _labels(pod).get(STAYS) == "true"


def _is_static(pod: Pod) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    return MIRROR in annotations or owner_of(pod) == "Node"


def _has_empty_dir(pod: Pod) -> bool:
    return any("emptyDir" in volume for volume in _volumes(pod))


def _is_device(path: Any) -> bool:
    text = str(path or "").rstrip("/")
    return text in DEVICES or text.startswith(("/dev/nvidia", "/run/nvidia/"))


def _container_uses(container: Mapping[str, Any]) -> bool:
    resources = container.get("resources") or {}
    limits = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    if any(name.startswith(GPU) for name in limits) or resources.get("claims"):
        return True
    values = {each.get("name"): each for each in container.get("env") or ()}
    visible = values.get(VISIBLE) or {}
    return bool(visible.get("valueFrom")) or (visible.get("value") or "") not in NONE


def _containers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _volumes(pod: Pod) -> list[Mapping[str, Any]]:
    return list((pod.get("spec") or {}).get("volumes") or ())


def _labels(pod: Pod) -> Mapping[str, str]:
    return pod["metadata"].get("labels") or {}
