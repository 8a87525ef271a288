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
class Question:
    """What the plan of a host has to know of others."""

    file: str = ""  # which other control planes of the run have it
    server: str = ""  # host:port; whether a Kubernetes API answers there


@dataclass(frozen=True, slots=True)
class Place:
    """A host's groups and neighbours."""

    groups: frozenset[str] = frozenset()
    control_planes: tuple[str, ...] = ()  # hosts of the group control_plane, in its order
    position: int = 0  # among the control planes; 0 for a host that is none of them
    plane: Mapping[str, Any] = field(default_factory=dict)  # data of the first control plane
    absent: frozenset[str] = frozenset()  # control planes that are not part of the run
    twins: tuple[Twin, ...] = ()  # of hosts read before this one
    same_machine: tuple[str, str] | None = None  # this name, and that of a host read before
    having: tuple[str, ...] = ()  # other control planes of the run with the file of a Question
    answering: str = ""  # version of the Kubernetes API at the server of a Question


NO_PLACE = Place()
