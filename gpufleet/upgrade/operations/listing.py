"""Nodes of one cluster and their pods, several requests at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from gpufleet.kube.operations.api import ClusterApi
from gpufleet.upgrade.nodes import MANAGER

AT_ONCE = 16  # requests to a cluster side by side

Value = TypeVar("Value")


def of_node(api: ClusterApi, name: str) -> list[Any]:
    """The pods of one node."""
    return api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={name}")


def pods_of(api: ClusterApi, nodes: Mapping[str, str]) -> dict[str, list[Any]]:
    """By host, the pods of its node."""
    return side_by_side(lambda host: of_node(api, nodes[host]), list(nodes))


def every_node(api: ClusterApi) -> list[Any]:
    """All nodes, without their lists of images and of what others changed."""
    return api.list("/api/v1/nodes", "application/json", _lean)


def _lean(node: dict[str, Any]) -> dict[str, Any]:
    entries = node["metadata"].pop("managedFields", None) or ()
    ours = [entry for entry in entries if entry.get("manager") == MANAGER]
    node["metadata"]["managedFields"] = ours
    (node.get("status") or {}).pop("images", None)
    return node


def side_by_side(call: Callable[[str], Value], names: Sequence[str]) -> dict[str, Value]:
    """Call a function for each of these names."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(call, names), strict=True))
