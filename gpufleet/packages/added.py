"""The packages that gpufleet installed, in a role's entry of the host's record. Pure."""

from __future__ import annotations

from collections.abc import Collection

from gpufleet.facts.record import AnyEntry, RoleEntry


def carried(entry: AnyEntry, old: RoleEntry) -> AnyEntry:
    """`entry` with the packages that earlier runs added, from `old`."""
    return entry.model_copy(update={"added": old.added})


def with_added(entry: AnyEntry, names: Collection[str]) -> AnyEntry:
    """`entry` with `names`, which gpufleet installed."""
    return entry.model_copy(update={"added": sorted({*entry.added, *names})}) if names else entry
