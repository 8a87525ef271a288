"""The nodes of a cluster and the pods on their GPUs, from answers of its API. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpufleet.core.visible import one_line
from gpufleet.kube.node_answers import count_of, is_gpu, parse_node, uses_gpus
from gpufleet.kube.parse import Answer, true_condition

ROLE_LABEL = "node-role.kubernetes.io/"
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class NodeMember:
    """One node; `gpus`: how many pods may use, `used`: how many pods hold."""

    name: str
    ready: bool
    reason: str  # why it is not Ready; ""
    part: str  # control-plane or worker
    version: str
    gpus: int
    used: int
    cordoned: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def parse_members(nodes: Iterable[Answer], pods: Sequence[Answer]) -> list[NodeMember]:
    """The nodes of a cluster, sorted by name."""
    used = Counter[str]()
    for pod in pods:
        used[_spec(pod).get("nodeName") or ""] += _requested(pod)
    return sorted((_member(node, used) for node in nodes), key=lambda each: each.name)


def unknown_hosts(nodes: Iterable[Answer], hosts: Mapping[str, str]) -> list[str]:
    """Names of the hosts that are not nodes, or [] if there are as many nodes as hosts, whatever
    their names. `hosts`: their names in the inventory, and addresses."""
    listed = list(nodes)
    if len(listed) >= len(hosts):
        return []
    known = {str(node["metadata"]["name"]).lower() for node in listed}
    for node in listed:
        addresses = (node.get("status") or {}).get("addresses") or ()
        known |= {str(each.get("address")).lower() for each in addresses}
    return [name for name, address in hosts.items() if known.isdisjoint((name.lower(), address))]


def gpu_pods(pods: Iterable[Answer]) -> list[str]:
    """namespace/name of the pods that hold GPUs on a node, and of those that hold devices by claims
    of resources, which may be GPUs."""
    return sorted(_name(pod) for pod in pods if uses_gpus(pod, claims=True))


def unready_pods(pods: Iterable[Answer], namespaces: Sequence[str]) -> list[str]:
    """namespace/name of the pods of these namespaces that are neither Ready nor have ended."""
    return sorted(
        _name(pod)
        for pod in pods
        if pod["metadata"].get("namespace") in namespaces
        and not _ended(pod)
        and not true_condition(pod, "Ready")
    )


def _member(node: Answer, used: Mapping[str, int]) -> NodeMember:
    parsed = parse_node(node)
    status = node.get("status") or {}
    ready = bool(true_condition(node, "Ready"))
    reported = [each for each in status.get("conditions") or () if each.get("type") == "Ready"]
    message = str(reported[0].get("message") or "") if reported else ""
    reason = "" if ready else message or "it has not reported"
    return NodeMember(
        name=one_line(parsed.name),
        ready=ready,
        reason=one_line(reason),
        part="control-plane" if f"{ROLE_LABEL}control-plane" in parsed.labels else "worker",
        version=one_line(str((status.get("nodeInfo") or {}).get("kubeletVersion") or "")),
        gpus=sum(count for name, count in parsed.allocatable.items() if is_gpu(name)),
        used=used[parsed.name],
        cordoned=bool((node.get("spec") or {}).get("unschedulable")),
    )


def _requested(pod: Answer) -> int:
    """GPUs that all containers of a pod hold. 0 for a pod that has ended."""
    if _ended(pod):
        return 0
    found = 0
    spec = _spec(pod)
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        limits = (container.get("resources") or {}).get("limits") or {}
        found += sum(count_of(str(count)) for name, count in limits.items() if is_gpu(name))
    return found


def _ended(pod: Answer) -> bool:
    return (pod.get("status") or {}).get("phase") in ENDED


def _spec(pod: Answer) -> Mapping[str, Any]:
    return pod.get("spec") or {}


def _name(pod: Answer) -> str:
    return one_line(f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}")
