"""Shared by the tests of several control planes."""

from __future__ import annotations

from typing import Any

from gpufleet.role.place import Place

PLANES = ("cp-1", "cp-2", "cp-3")
ENDPOINT = "k8s.lab:6443"


def place(
    position: int | None, planes: tuple[str, ...] = PLANES, endpoint: str = ENDPOINT, **changes: Any
) -> Place:
    """The Place of a control plane, or of a worker if `position` is None."""
    groups = {"gpu_nodes"} if position is None else {"control_plane"}
    data = {"kubernetes_enabled": True, "kubernetes_endpoint": endpoint}
    return Place(frozenset(groups), planes, position or 0, data, **changes)
