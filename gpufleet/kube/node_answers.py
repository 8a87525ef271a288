"""Parse the nodes of a cluster. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.kube.facts import ClusterNode, Taint
from gpufleet.kube.parse import Answer


class ForeignKind(Sourced):
    """A kind of node, identified by one of its labels. `what`: a clause about such a node."""

    label: str
    value: str
    what: str


class NodeKinds(Entry):
    """node_kinds.yaml"""

    foreign: tuple[ForeignKind, ...]


load_node_kinds = entry_loader(NodeKinds, "kube/node_kinds")


def foreign_node(labels: Mapping[str, str]) -> str | None:
    """Why a node with these labels never runs pods of Linux DaemonSets, or None."""
    kinds = load_node_kinds().foreign
    return next((kind.what for kind in kinds if labels.get(kind.label) == kind.value), None)


_OWN_DOMAINS = ("kubernetes.io/", "hugepages-")  # resources that are not extended resources
_QUANTITY = re.compile(r"(\d+)(k|M)?")


def parse_node(answer: Answer) -> ClusterNode:
    """One item of `/api/v1/nodes`."""
    spec, status = answer.get("spec") or {}, answer.get("status") or {}
    labels = answer["metadata"].get("labels") or {}
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
        foreign=foreign_node(labels),
    )


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
    """The count of an extended resource. The API may write it with a suffix."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return 0
    return int(match[1]) * {"k": 1000, "M": 1000_000}.get(match[2] or "", 1)
