"""Decides which pods leave a node before its driver is changed, and which are waited for. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.visible import one_line
from gpufleet.kube.parse import true_condition

Pod = Mapping[str, Any]

DRAIN_SKIP_LABEL = "nvidia.com/gpu-driver-upgrade-drain.skip"  # of a pod that must not be evicted
MIRROR = "kubernetes.io/config.mirror"  # annotation of a static pod
GPU_PREFIX = "nvidia.com/"  # resources
TAINT = "gpufleet/upgrade"  # keeps DaemonSets from restarting GPU clients during the change
DEVICES = ("/run/nvidia", "/var/run/nvidia")
# Plugins of other devices mount these too, and some tolerate every taint, such as SR-IOV's:
# https://github.com/k8snetworkplumbingwg/sriov-network-operator/pull/840 (read 2026-11-30)
ANY_DEVICES = ("/var/lib/kubelet/device-plugins", "/var/lib/kubelet/pod-resources", "/run/cdi",
               "/var/run/cdi", "/etc/cdi")  # fmt: skip
DEVICE_FOLDERS = ("/dev/nvidia", "/run/nvidia/", "/var/run/nvidia/")
NVIDIA_RUNTIME_CLASS = "nvidia"  # RuntimeClass, and the prefix of others: nvidia-cdi
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
NO_DEVICES = ("", "void", "none")
ENDED = ("Succeeded", "Failed")
# They replace a pod by the same pod elsewhere.
REPLACING_CONTROLLERS = ("ReplicaSet", "ReplicationController", "StatefulSet")


@dataclass(frozen=True, slots=True)
class Policy:
    """Which pods may be evicted although they do not come back. `every`: include pods without a
    GPU."""

    every: bool = False
    jobs: str = "wait"  # or "evict"
    empty_dir: bool = False
    unmanaged: bool = False


@dataclass(slots=True)
class Leaving:
    """The pods of one node, sorted by their treatment."""

    evict: list[Pod] = field(default_factory=list)
    waited: dict[str, str] = field(default_factory=dict)  # namespace/name -> why
    clients: list[Pod] = field(default_factory=list)  # of DaemonSets; they leave last, and return
    going: list[str] = field(default_factory=list)  # being deleted

    @property
    def empty(self) -> bool:
        """True if only clients are left."""
        return not (self.evict or self.waited or self.going)


def sort_pods(pods: Iterable[Pod], policy: Policy) -> Leaving:
    """The pods that must leave a node, and those that use its GPUs."""
    found = Leaving()
    for pod in pods:
        about, owner = pod["metadata"], owner_of(pod).get("kind", "")
        returns = owner == "DaemonSet" and tolerates_taint(pod, TAINT)  # during the change
        uses = uses_gpu(pod, folders=not returns)
        kept = (about.get("labels") or {}).get(DRAIN_SKIP_LABEL) == "true"
        static = owner == "Node" or MIRROR in (about.get("annotations") or {})
        if (pod.get("status") or {}).get("phase") in ENDED:
            continue
        if owner == "DaemonSet" and not kept:
            found.clients += [pod] if uses else []
        elif not uses and (not policy.every or kept or static):
            continue
        elif about.get("deletionTimestamp"):
            found.going.append(name_of(pod))
        elif kept:
            found.waited[name_of(pod)] = f"it has the label {DRAIN_SKIP_LABEL}=true"
        elif static:
            found.waited[name_of(pod)] = "it is a static pod of the kubelet"
        elif why := _why_lost(pod, owner, policy, uses=uses):
            found.waited[name_of(pod)] = why
        else:
            found.evict.append(pod)
    return found


def _why_lost(pod: Pod, owner: str, policy: Policy, *, uses: bool) -> str | None:
    """Why an eviction would lose something that the policy keeps, or None. A GPU pod of an unknown
    controller, such as PyTorchJob or RayCluster, may be a training run."""
    lost = owner == "Job" or (uses and owner and owner not in REPLACING_CONTROLLERS)
    if lost and policy.jobs == "wait":
        return f"it is of a {one_line(owner)} (upgrade_jobs)"
    if not owner and not policy.unmanaged:
        return "it has no controller that would replace it (upgrade_evict_unmanaged)"
    if not policy.empty_dir and any(map(_keeps_data, pod["spec"].get("volumes") or ())):
        return "it has data in an emptyDir (upgrade_evict_empty_dir)"
    return None


def _keeps_data(volume: Mapping[str, Any]) -> bool:
    """True for an emptyDir on a disk. One in memory, such as /dev/shm of vLLM, is scratch space.

    Source: https://github.com/kubernetes/autoscaler/pull/5551 (merged 2023, read 2026-11-28)
    """
    return "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") != "Memory"


def unreplaced_pods(leaving: Leaving) -> list[str]:
    """The pods that a drain evicts although their controller may not replace them, with its kind.
    For example, evicting the head of a RayCluster ends work on other nodes too."""
    found = ((pod, owner_of(pod).get("kind", "")) for pod in leaving.evict)
    known = ("", "Job", *REPLACING_CONTROLLERS)
    return [f"{name_of(pod)} ({one_line(owner)})" for pod, owner in found if owner not in known]


def uses_gpu(pod: Pod, *, folders: bool = True) -> bool:
    """True if a pod holds a GPU or uses the driver's libraries; with `folders`, also if it mounts a
    folder for plugins of any device. A mount of the whole /dev proves nothing, because storage
    plugins have it: a process that holds a GPU is found on the host."""
    spec = pod["spec"]
    runtime = spec.get("runtimeClassName") or ""
    if runtime.startswith(NVIDIA_RUNTIME_CLASS) or spec.get("resourceClaims"):
        return True
    for volume in spec.get("volumes") or ():
        path = ((volume.get("hostPath") or {}).get("path") or "").rstrip("/")
        if path in DEVICES or path.startswith(DEVICE_FOLDERS) or (folders and path in ANY_DEVICES):
            return True
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return any(map(_container_uses, containers))


def _container_uses(container: Mapping[str, Any]) -> bool:
    resources = container.get("resources") or {}
    wanted = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    if any(name.startswith(GPU_PREFIX) for name in wanted) or resources.get("claims"):
        return True
    visible = [each for each in container.get("env") or () if each.get("name") == VISIBLE]
    return any(each.get("valueFrom") or each.get("value", "") not in NO_DEVICES for each in visible)


def tolerates_taint(pod: Pod, key: str) -> bool:
    """True if a pod may start on a node with a taint of that key and effect NoSchedule."""
    for each in pod["spec"].get("tolerations") or ():
        right_key = each.get("key") in (None, "", key)
        right = right_key and each.get("effect") in (None, "", "NoSchedule")
        if right and (each.get("operator") == "Exists" or each.get("key") == key):
            return True
    return False


def owner_of(pod: Pod) -> Mapping[str, Any]:
    """The controller of a pod, or {}."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def owner_name(pod: Pod) -> str:
    """The controller of a pod, with its namespace."""
    return one_line(f"{pod['metadata']['namespace']}/{owner_of(pod).get('name', '')}")


def count_requests(pods: Iterable[Pod]) -> Counter[str]:
    """Resource -> number that the containers of pods request, except of pods that have ended."""
    found: Counter[str] = Counter()
    for pod in pods:
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            for each in pod["spec"].get("containers") or ():
                limits = (each.get("resources") or {}).get("limits") or {}
                found.update({name: int(n) for name, n in limits.items() if str(n).isdecimal()})
    return found


def is_pod_ready(pod: Pod) -> bool:
    return bool(true_condition(pod, "Ready")) and not pod["metadata"].get("deletionTimestamp")


def name_of(pod: Pod) -> str:
    return one_line(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
