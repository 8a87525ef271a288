"""What a run was started with, as its record has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter


@dataclass(frozen=True, slots=True)
class Order:
    """What a run was started with."""

    inventory: str
    folder: str  # the working directory: paths of the inventory count from it
    options: tuple[str, ...] = ()  # of pyinfra
    metrics: str = ""  # file for those of the run
    origin: str = ""  # run that a roll-back returns from
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)  # settings of each host
    reboots: dict[str, str] = field(default_factory=dict)  # node_reboot that steps keep
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)  # NodeAt of each node
    others: dict[str, dict[str, Any]] = field(default_factory=dict)  # of hosts left out, if Ready
    owner: int | None = None  # of the folder, a user's number; unknown to earlier versions
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    @classmethod
    def from_dict(cls, data: object) -> Order:
        """Raises ValueError for what is none."""
        order: Order = _ORDER.validate_python(data)
        if "\0" in order.inventory + order.folder + order.metrics:
            raise ValueError("a path has a zero byte")
        return order


_ORDER = TypeAdapter(Order)
