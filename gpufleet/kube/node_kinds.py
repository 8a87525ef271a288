"""Nodes that never run the pods of a Linux DaemonSet. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from gpufleet.core.entries import Entry, Sourced, loader


class ForeignKind(Sourced):
    """A kind of node, by one of its labels. `what`: a clause about such a node."""

    label: str
    value: str
    what: str


class NodeKinds(Entry):
    """node_kinds.yaml"""

    foreign: tuple[ForeignKind, ...]


load_node_kinds = loader(NodeKinds, "kube/node_kinds")


def foreign_node(labels: Mapping[str, str]) -> str:
    """Why a node with these labels runs no such pods; "" if it does."""
    kinds = load_node_kinds().foreign
    return next((kind.what for kind in kinds if labels.get(kind.label) == kind.value), "")
