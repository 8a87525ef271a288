"""Nodes of one cluster and their pods, by as few and small answers as the API allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from gpufleet.kube.operations.api import ClusterApi
from gpufleet.upgrade.pods import Pod, needed

AT_ONCE = 16  # requests to a cluster side by side
SHARE = 4  # one list of all is read for at least every fourth node of a cluster
NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
JSON = "application/json"

Value = TypeVar("Value")


def nodes_of(api: ClusterApi, names: Sequence[str], size: int) -> dict[str, Any]:
    """The nodes of these names that are there. `size`: of the cluster, 0 if it is not known."""
    if _are_many(names, size):
        wanted = frozenset(names)
        listed = every_node(api)
        return {name: node for node in listed if (name := node["metadata"]["name"]) in wanted}
    found = _side_by_side(lambda name: api.find(f"{NODES}/{name}"), names)
    return {name: node for name, node in found.items() if node is not None}


def pods_of(api: ClusterApi, names: Sequence[str], size: int) -> dict[str, list[Any]]:
    """The pods of each node."""
    if not _are_many(names, size):
        return _side_by_side(lambda name: of_node(api, name), names)
    found: dict[str, list[Any]] = {name: [] for name in names}

    def kept(pod: Pod) -> Pod | None:
        return needed(pod) if pod["spec"].get("nodeName") in found else None

    for pod in api.list(PODS, JSON, kept):
        found[pod["spec"]["nodeName"]].append(pod)
    return found


def of_node(api: ClusterApi, name: str) -> list[Any]:
    """The pods of one node."""
    return api.list(PODS, JSON, needed, fieldSelector=f"spec.nodeName={name}")


def every_node(api: ClusterApi) -> list[Any]:
    """All nodes, without their lists of images and of who changed which field."""
    return api.list(NODES, JSON, _lean)


def _lean(node: dict[str, Any]) -> dict[str, Any]:
    node["metadata"].pop("managedFields", None)
    (node.get("status") or {}).pop("images", None)
    return node


def _are_many(names: Sequence[str], size: int) -> bool:
    return bool(size) and len(names) * SHARE >= size


def _side_by_side(call: Callable[[str], Value], names: Sequence[str]) -> dict[str, Value]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(call, names), strict=True))
