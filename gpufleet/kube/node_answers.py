"""Nodes of a cluster, as the API describes them, and the node requirements of a pod. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.entries import Entry, Sourced, entry_loader

Answer = Mapping[str, Any]
GPU_RESOURCE = "nvidia.com/gpu"  # https://github.com/NVIDIA/k8s-device-plugin (read 2026-11-20)
GPU_VARIANTS = (f"{GPU_RESOURCE}.", "nvidia.com/mig-")  # beginnings of names
DRA_LABEL = "gpufleet/dra-driver"  # of a node; the DRA driver serves it if it is "true"
LABEL_FIELD_MANAGER = "gpufleet-labels"  # field manager of labels that gpufleet applies to nodes
_OWN_DOMAINS = ("kubernetes.io/", "hugepages-")  # resources that are not extended resources
_QUANTITY = re.compile(r"(\d{1,18})(k|M)?")


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node."""

    key: str
    effect: str  # NoSchedule, PreferNoSchedule, NoExecute
    value: str = ""

    def __str__(self) -> str:
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One node. `capacity` and `allocatable`: its extended resources, such as nvidia.com/gpu.

    `down`: why no pod can start on it now, or None. `foreign`: why it never runs pods of a Linux
    DaemonSet, or "". `runtime`: as its kubelet reports it, containerd://2.1.5. `handlers`: those of
    its runtime, () if the kubelet or the runtime is too old to say. `own_labels`: those that
    gpufleet applied and nobody has changed since.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    down: str | None = None
    foreign: str | None = None
    runtime: str = ""
    handlers: tuple[str, ...] = ()
    own_labels: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        return not (self.down or self.foreign)


def is_gpu(resource: str) -> bool:
    """True if a resource is GPUs, shared GPUs or MIG devices.

    Example: nvidia.com/gpu.shared and nvidia.com/mig-1g.10gb are, nvidia.com/hostdev is not.
    """
    return resource == GPU_RESOURCE or resource.startswith(GPU_VARIANTS)


def has_gpus(resources: Mapping[str, int]) -> bool:
    """True if a node's resources include GPUs, shared GPUs or MIG devices."""
    return any(count and is_gpu(name) for name, count in resources.items())


@dataclass(frozen=True, slots=True)
class Placement:
    """Node requirements of a pod template. `terms`: required node affinity, one must match."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[Mapping[str, Any], ...] = ()
    tolerations: tuple[Mapping[str, Any], ...] = ()
    host_network: bool = False


class ForeignKind(Sourced):
    """A kind of node, identified by one of its labels. `what`: a clause about such a node."""

    label: str
    value: str
    what: str


class NodeKinds(Entry):
    """node_kinds.yaml"""

    foreign: tuple[ForeignKind, ...]


load_node_kinds = entry_loader(NodeKinds, "kube/node_kinds")


def is_dra_node(labels: Mapping[str, str]) -> bool:
    """True if a node with these labels has its GPUs from the DRA driver that gpufleet installs."""
    return labels.get(DRA_LABEL) == "true"


def uses_gpus(pod: Answer, *, claims: bool = False) -> bool:
    """True if a running or starting pod on a node has GPUs, shared GPUs or MIG devices. `claims`:
    also if it claims devices, which may be GPUs of the DRA driver."""
    spec, status = pod["spec"], pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return False
    if claims and spec.get("resourceClaims"):
        return True
    for each in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        limits = (each.get("resources") or {}).get("limits") or {}
        if any(is_gpu(name) and str(count) != "0" for name, count in limits.items()):
            return True
    return False


def gpu_pods_by_node(pods: Iterable[Answer], nodes: Iterable[Answer]) -> dict[str, tuple[str, ...]]:
    """Node -> its pods with GPUs, as NAMESPACE/NAME: on a node of the DRA driver, also pods that
    claim devices."""
    found: dict[str, tuple[str, ...]] = {}
    dra = {node["metadata"]["name"] for node in nodes
           if is_dra_node(node["metadata"].get("labels") or {})}  # fmt: skip
    for pod in pods:
        if uses_gpus(pod, claims=pod["spec"].get("nodeName") in dra):
            about, node = pod["metadata"], str(pod["spec"]["nodeName"])
            name = f"{about.get('namespace') or ''}/{about['name']}"
            found[node] = (*found.get(node, ()), name)
    return found


def parse_node(answer: Answer) -> ClusterNode:
    """One item of `/api/v1/nodes`."""
    spec, status = answer.get("spec") or {}, answer.get("status") or {}
    labels = answer["metadata"].get("labels") or {}
    kinds = load_node_kinds().foreign
    foreign = next((kind.what for kind in kinds if labels.get(kind.label) == kind.value), None)
    return ClusterNode(
        name=answer["metadata"]["name"],
        labels=labels,
        taints=tuple(
            Taint(taint["key"], taint["effect"], taint.get("value") or "")
            for taint in spec.get("taints") or ()
        ),
        capacity=_extended(status.get("capacity") or {}),
        allocatable=_extended(status.get("allocatable") or {}),
        down=_down(answer),
        foreign=foreign,
        handlers=tuple(each.get("name") or "" for each in status.get("runtimeHandlers") or ()),
        runtime=(status.get("nodeInfo") or {}).get("containerRuntimeVersion") or "",
        own_labels=_own_labels(answer),
    )


def _own_labels(answer: Answer) -> tuple[str, ...]:
    """The labels that gpufleet applied. The API server drops a label from a manager's entry when
    another user changes it."""
    found: set[str] = set()
    for entry in answer["metadata"].get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation")) == (LABEL_FIELD_MANAGER, "Apply"):
            fields = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
            found.update(name[2:] for name in fields.get("f:labels") or () if name[:2] == "f:")
    return tuple(sorted(found))


def _down(answer: Answer) -> str | None:
    """Why no pod can start on a node now, or None."""
    if answer["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    conditions = (answer.get("status") or {}).get("conditions") or ()
    ready = next((entry for entry in conditions if entry["type"] == "Ready"), None)
    if ready is None:
        return "its kubelet has never reported"
    if ready["status"] == "True":
        return None
    return f"not Ready: {ready.get('message') or ready.get('reason') or ready['status']}"


def _extended(resources: Mapping[str, str]) -> dict[str, int]:
    return {
        name: count_of(quantity)
        for name, quantity in resources.items()
        if "/" in name and not name.startswith(_OWN_DOMAINS)
    }


def count_of(quantity: str) -> int:
    """The count of an extended resource, 0 for another text. The API may write it with a suffix."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return 0
    return int(match[1]) * {"k": 1000, "M": 1000_000}.get(match[2] or "", 1)
