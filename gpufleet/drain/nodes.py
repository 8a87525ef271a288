"""A cluster node during its upgrade: the owner of its cordon, and its state before it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gpufleet.drain.pods import GPU_PREFIX, TAINT
from gpufleet.kube.node_answers import count_of, is_gpu
from gpufleet.kube.parse import true_condition

EVENTS_NAMESPACE = "default"  # of events about nodes, which have no namespace
UPGRADE_FIELD_MANAGER = "gpufleet-upgrade"  # the API server records the fields that it owns
UPGRADE_ANNOTATION = "gpufleet/upgrade"  # annotation: facts about the node from before its cordon
FAILED = "gpufleet/upgrade-failed"  # annotation of a node that was left behind: the reason
UNMANAGED = "k8saas.nvidia.com/ManagedByNVSentinel"  # label: NVSentinel leaves the node alone
SCALE_DOWN = "cluster-autoscaler.kubernetes.io/scale-down-disabled"  # annotation
# Annotation: Karpenter deletes no empty node that has it. Source (read 2026-11-28):
# https://karpenter.sh/docs/concepts/disruption/#node-level-controls
NOT_DISRUPTED = "karpenter.sh/do-not-disrupt"
SKIP_LABEL = "nvidia.com/gpu-driver-upgrade.skip"  # label of a node that must not be upgraded

CORDONED = "another user cordoned the node"
UNCORDONED = "another user uncordoned the node during the run"
STAYS_CORDONED = "its node stays cordoned: another user cordoned it, too"
GONE = "its node is not in the cluster any more"
OTHER_MACHINE = "another machine has its name now"
SKIPPED_BY_LABEL = f"the node has the label {SKIP_LABEL}=true"
MAX_REPLICAS = 1000  # of a GPU, by time-slicing or MPS
MAX_REASON = 1000  # characters in an annotation

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """Facts about a node from before its cordon, which survive SIGKILL. `gpus`: the GPUs that it
    offered; `clients`: the DaemonSets with Ready pods that used its GPUs."""

    run: str = ""
    gpus: Mapping[str, str] = field(default_factory=dict)
    clients: tuple[str, ...] = ()

    def as_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


def taken_of(node: Node) -> Taken:
    """Read the node's annotation. As its kubelet can write it, invalid parts are ignored."""
    try:
        found = json.loads(annotations_of(node).get(UPGRADE_ANNOTATION) or "{}")
        run, gpus, clients = found.get("run"), found.get("gpus"), found.get("clients")
    except (ValueError, RecursionError, AttributeError):
        return Taken()
    return Taken(
        run if isinstance(run, str) else "",
        {str(key): str(each) for key, each in gpus.items()} if isinstance(gpus, dict) else {},
        tuple(map(str, clients)) if isinstance(clients, list) else (),
    )


def is_our_cordon(node: Node) -> bool:
    """True if gpufleet cordoned the node. The API server drops a manager's entry for a field that
    another user has removed."""
    return is_cordoned(node) and any(
        entry.get("manager") == UPGRADE_FIELD_MANAGER
        and entry.get("operation") == "Apply"
        and "f:unschedulable" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
        for entry in node["metadata"].get("managedFields") or ()
    )


def is_cordoned(node: Node) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def is_node_ready(node: Node) -> bool:
    return bool(true_condition(node, "Ready"))


def is_left_behind(node: Node) -> bool:
    """True if the node's roll-back failed, in this run or another."""
    return is_cordoned(node) and FAILED in annotations_of(node)


def is_other(node: Node, machine: str) -> bool:
    """True if the node's name now belongs to another machine, as far as both ids are known."""
    return bool(machine) and machine_of(node) not in ("", machine)


def machine_of(node: Node) -> str:
    """The machine id that the kubelet reported, or ""."""
    return str(((node.get("status") or {}).get("nodeInfo") or {}).get("machineID") or "")


def why_not_begun(node: Node, machine: str = "") -> str | None:
    """Why a run must not cordon a node, or None. A node that gpufleet has cordoned may be taken.
    `machine`: the machine id of its host when the run was planned."""
    if is_other(node, machine):
        return OTHER_MACHINE
    if is_cordoned(node) and not is_our_cordon(node):
        return CORDONED
    labels = (node.get("metadata") or {}).get("labels") or {}
    if labels.get(SKIP_LABEL) == "true":
        return SKIPPED_BY_LABEL
    return None if is_node_ready(node) else "the node is not Ready"


def annotations_of(node: Node) -> Mapping[str, str]:
    return (node.get("metadata") or {}).get("annotations") or {}


def has_taint(node: Node) -> bool:
    """True if a node has our taint. Kubernetes 1.18's controller may restore a removed one."""
    return any(each["key"] == TAINT for each in taints_of(node))


def taints_of(node: Node) -> list[Mapping[str, Any]]:
    return list((node.get("spec") or {}).get("taints") or ())


def gpus_of(node: Mapping[str, Any]) -> dict[str, str]:
    """The GPU resources that a node offers."""
    offered = (node.get("status") or {}).get("allocatable") or {}
    found = {name: str(count) for name, count in offered.items() if name.startswith(GPU_PREFIX)}
    return {name: count for name, count in found.items() if count != "0"}


def gpu_of(offered: Iterable[str]) -> str:
    """The resource for a pod that checks a node: a GPU or a partition of one, else another NVIDIA
    device, such as a network interface, or ""."""
    order = (f"{GPU_PREFIX}gpu", f"{GPU_PREFIX}mig-", GPU_PREFIX)
    found = [name for begins in order for name in sorted(offered) if name.startswith(begins)]
    return next(iter(found), "")


def resources_to_try(offered: Mapping[str, str], held: Mapping[str, int]) -> list[str]:
    """The resources that a node is checked with, a pod for each: GPUs and MIG devices of each
    profile, else another NVIDIA device, if any. Left out: those that pods on the node hold
    completely. `offered`: resource -> number; `held`: resource -> number.

    Example: nvidia.com/mig-1g.10gb and nvidia.com/mig-3g.40gb of a GPU with both profiles.
    """
    found = sorted(filter(is_gpu, offered)) or [name for name in (gpu_of(offered),) if name]
    return [name for name in found if held.get(name, 0) < count_of(offered[name])]


def missing_resources(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """The GPU resources of which a node offers less than before, as text, or None. More is no
    problem: a new driver may find a GPU that the old one had lost."""
    lacking = [f"{name}: {now.get(name, '0')} of {count}" for name, count in before.items()
               if count_of(now.get(name, "0")) < count_of(count)]  # fmt: skip
    return ", ".join(lacking) or None


def unlike_offer(offers: Iterable[Mapping[str, int]], now: Mapping[str, str]) -> str | None:
    """How the GPU resources of a node differ from each of these offers, as text, or None. Replicas
    of time-slicing and MPS multiply all of them, and may rename them."""
    found = {
        name.removesuffix(".shared"): count_of(count) for name, count in now.items() if is_gpu(name)
    }
    for offer in offers:
        times = {found.get(name, 0) / count for name, count in offer.items()}
        if (
            found.keys() == offer.keys()
            and len(times) == 1
            and min(times) in range(1, MAX_REPLICAS)
        ):
            return None
    wanted = " or ".join(_resources_shown(offer) for offer in offers)
    return f"{_resources_shown(found)} instead of {wanted}"


def _resources_shown(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing"
