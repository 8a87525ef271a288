"""Where a host stands among those of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Twin:
    """Another host of the run with an identity that must be unique."""

    name: str
    what: str  # "machine id", "host name" or "MAC address"
    value: str


@dataclass(frozen=True, slots=True)
class Place:
    """A host's groups and neighbours."""

    groups: frozenset[str] = frozenset()
    control_planes: tuple[str, ...] = ()  # hosts of the group control_plane, in its order
    plane: Mapping[str, Any] = field(default_factory=dict)  # data of the first control plane
    plane_runs: bool = True  # it is part of the run
    twins: tuple[Twin, ...] = ()  # of hosts read before this one


NO_PLACE = Place()
