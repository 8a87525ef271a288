"""Types: nodes of a cluster, and the node requirements of a pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
    DaemonSet, or "".
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]
    down: str | None = None
    foreign: str | None = None

    @property
    def usable(self) -> bool:
        return not (self.down or self.foreign)


@dataclass(frozen=True, slots=True)
class Placement:
    """Node requirements of a pod template. `terms`: required node affinity, one must match."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[Mapping[str, Any], ...] = ()
    tolerations: tuple[Mapping[str, str], ...] = ()
    host_network: bool = False
