"""Hosts, groups and waves of a run, as its record has them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter

from gpufleet.upgrade.subjects import Subject


@dataclass(frozen=True, slots=True)
class HostView:
    """What the plan of a run has to know of one host."""

    name: str
    model: str = ""  # of its GPUs, with their number
    distribution: str = ""
    kernel: str = ""
    before: str | None = None  # version of the driver's packages
    loaded: str | None = None
    target: str | None = None
    work: tuple[str, ...] = ()  # on its GPUs
    refusals: tuple[str, ...] = ()  # why it cannot be changed
    place: str = ""  # value of the key of upgrade_wave_by
    kubelet: bool = False
    machine: str = ""  # its /etc/machine-id

    @property
    def group(self) -> str:
        return f"{self.model}, {self.distribution}, {self.kernel}"

    @property
    def converged(self) -> bool:
        """Whether it has the target, packages and module."""
        return bool(self.target) and self.before == self.target == self.loaded


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A host that the run does not change. `blocked`: it is neither at the target nor left alone on
    purpose."""

    name: str
    reason: str
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """A host that the run changes."""

    name: str
    group: str
    before: str
    target: str


@dataclass(frozen=True, slots=True)
class Wave:
    """Hosts that may be changed side by side; `canary`: the first of their groups."""

    hosts: tuple[str, ...]
    canary: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds for a run as a whole; see UpgradeSettings."""

    max_unavailable: int = 1
    soak: int = 300
    max_failed: int = 3
    max_failed_in_a_row: int = 2
    window: str | None = None
    window_zone: str = "UTC"
    alerts: str | None = None
    alerts_ignored: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which hosts are changed, in which order, and which are left out. `kind`: `upgrade`, or
    `rollback`, whose targets are in the hosts' own caches; `subject`: what is changed."""

    hosts: tuple[Planned, ...]
    waves: tuple[Wave, ...]
    limits: Limits
    left_out: tuple[LeftOut, ...] = ()
    kind: str = "upgrade"
    subject: Subject = "driver"
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    by_name: Mapping[str, Planned] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {host.name: host for host in self.hosts})

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(host.group for host in self.hosts))

    @property
    def blocked(self) -> bool:
        """Whether a host is left out that should have the target."""
        return any(each.blocked for each in self.left_out)

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "subject": self.subject,
            "hosts": [asdict(host) for host in self.hosts],
            "waves": [asdict(wave) for wave in self.waves],
            "limits": asdict(self.limits),
            "left_out": [asdict(each) for each in self.left_out],
        }

    @classmethod
    def from_dict(cls, data: object) -> Plan:
        """Raises ValueError for what is none."""
        plan: Plan = _PLAN.validate_python(data)
        known = set(plan.by_name)
        if lost := [name for wave in plan.waves for name in wave.hosts if name not in known]:
            raise ValueError(f"its waves have hosts that it lacks: {names(lost)}")
        return plan


_PLAN = TypeAdapter(Plan)


def names(items: Sequence[str], most: int = 5) -> str:
    """A list for a sentence."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more
