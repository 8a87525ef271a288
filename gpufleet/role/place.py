"""A host's position among the hosts of its run."""

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
class PlaceQuestion:
    """Facts about other hosts that the plan of a host needs."""

    file: str = ""  # asks which other control planes of the run have it
    server: str = ""  # host:port; asks for its version of the Kubernetes API


@dataclass(frozen=True, slots=True)
class Place:
    """A host's groups and neighbours."""

    groups: frozenset[str] = frozenset()
    control_planes: tuple[str, ...] = ()  # hosts of the group control_plane, in its order
    position: int = 0  # among the control planes, 0 for other hosts
    plane: Mapping[str, Any] = field(default_factory=dict)  # data of the first control plane
    absent: frozenset[str] = frozenset()  # control planes outside the run
    twins: tuple[Twin, ...] = ()  # among hosts read earlier
    same_machine: tuple[str, str] | None = None  # this host's name and an earlier host's
    having: tuple[str, ...] = ()  # other control planes of the run with the file of a Question
    answering: str = ""  # version of the Kubernetes API at the server of a Question


NO_PLACE = Place()
