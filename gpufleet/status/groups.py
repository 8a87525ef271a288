"""Groups rows: equal rows for a table, or rows with the same value of a property. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from gpufleet.status.models import FLAGS, Flag, FleetStatus, Row

_VALUES: Mapping[str, Callable[[Row], str]] = {
    "model": lambda row: row.model,
    "layout": lambda row: row.layout,
    "driver": lambda row: row.driver,
    "os": lambda row: row.os,
    "kernel": lambda row: row.kernel,
}
GROUP = "group"
PROPERTIES = (*_VALUES, GROUP)  # besides data keys of the inventory


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


def has_property(fleet: FleetStatus, name: str) -> bool:
    """True for one of PROPERTIES and for a data key that a host of the inventory has."""
    return name in PROPERTIES or any(name in row.data for row in fleet.rows)


def by_property(fleet: FleetStatus, name: str) -> list[Group]:
    """Groups of hosts by a property or a data key, the largest first. Unreachable hosts have only
    data and inventory groups."""
    value = _value_of_groups(fleet) if name == GROUP else _VALUES.get(name, _value_of_key(name))
    groups = [Group(value(rows[0]), rows) for rows in group_rows(fleet.rows, value)]
    return sorted(groups, key=lambda group: -len(group.rows))


def _value_of_key(key: str) -> Callable[[Row], str]:
    return lambda row: row.data.get(key, "")


def _value_of_groups(fleet: FleetStatus) -> Callable[[Row], str]:
    """The inventory groups of a host, without those of every host, which distinguish none.
    In a fleet of gpu_nodes, a host in gpu_nodes and rack_a has "rack_a"."""
    every = set.intersection(*(set(row.groups) for row in fleet.rows)) if fleet.rows else set()

    def value(row: Row) -> str:
        return ", ".join(name for name in row.groups if name not in every) or ", ".join(row.groups)

    return value


def whole_fleet(fleet: FleetStatus) -> Group:
    """All hosts as one group."""
    return Group(fleet.inventory, fleet.rows)


def group_rows(rows: Sequence[Row], key: Callable[[Row], Hashable]) -> list[tuple[Row, ...]]:
    """Groups of rows with the same key, in the order of their first hosts."""
    found: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return [tuple(members) for members in found.values()]
