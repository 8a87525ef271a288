"""Groups rows: equal rows for a table, or rows with the same value of a property. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from gpufleet.status.models import FLAGS, Flag, FleetStatus, Row

Property = Literal["model", "driver", "os", "kernel", "group"]
PROPERTIES: tuple[Property, ...] = get_args(Property)
_VALUES: Mapping[Property, Callable[[Row], str]] = {
    "model": lambda row: row.model,
    "driver": lambda row: row.driver,
    "os": lambda row: row.os,
    "kernel": lambda row: row.kernel,
    "group": lambda row: ", ".join(row.groups),
}


@dataclass(frozen=True, slots=True)
class Group:
    """Hosts with the same value of a property, or "" if they have no value."""

    value: str
    rows: tuple[Row, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(row.name for row in self.rows)

    @property
    def gpus(self) -> int:
        return sum(row.gpus for row in self.rows if not row.is_second_name)

    @property
    def flags(self) -> dict[Flag, int]:
        """The number of hosts with each flag; flags without a host are left out."""
        counts = Counter(flag for row in self.rows for flag in row.flags)
        return {flag: counts[flag] for flag in FLAGS if counts[flag]}


def group_equal_rows(rows: Sequence[Row]) -> list[tuple[Row, ...]]:
    """Groups of rows that look the same in a table, in the order of their first hosts."""
    return group_rows(rows, lambda row: (row.reached, row.texts, row.flags))


def by_property(fleet: FleetStatus, name: Property) -> list[Group]:
    """Groups of hosts by a property, the largest first. Unreachable hosts have no value."""
    value = _VALUES[name]
    groups = [Group(value(rows[0]), rows) for rows in group_rows(fleet.rows, value)]
    return sorted(groups, key=lambda group: -len(group.rows))


def whole_fleet(fleet: FleetStatus) -> Group:
    """All hosts as one group."""
    return Group(fleet.inventory, fleet.rows)


def group_rows(rows: Sequence[Row], key: Callable[[Row], Hashable]) -> list[tuple[Row, ...]]:
    """Groups of rows with the same key, in the order of their first hosts."""
    found: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return [tuple(members) for members in found.values()]
