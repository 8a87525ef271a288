"""The packages that gpufleet installed, in a role's entry of the host's record. Pure."""

from __future__ import annotations

from collections.abc import Collection

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import AnyEntry, RoleEntry


def carried(entry: AnyEntry, old: RoleEntry) -> AnyEntry:
    """`entry` with the packages that earlier runs added, from `old`."""
    if not old.exists:
        return entry.model_copy(update={"added": [], "unsure": []})
    there = {} if old.unsure is None else {"unsure": old.unsure}
    return entry.model_copy(update={"added": old.added, **there})


def with_added(
    entry: AnyEntry, names: Collection[str], old: RoleEntry, facts: NodeFacts
) -> AnyEntry:
    """`entry` with `names`, which gpufleet installed; `facts` match `old`."""
    if not names:
        return entry
    left = [name for name in unsure(old, facts) if name not in names]
    return entry.model_copy(update={"added": sorted({*entry.added, *names}), "unsure": left})


def unsure(entry: RoleEntry, facts: NodeFacts) -> tuple[str, ...]:
    """Added packages that others may have installed meanwhile.

    Earlier versions of gpufleet counted every package that appeared during a run. Of their entries
    (without `unsure`), packages requested by name, or at the entry's version, are certain.
    """
    if entry.unsure is not None:
        return tuple(entry.unsure)
    return tuple(
        name
        for name in entry.added
        if name not in entry.packages
        and not (name in facts.packages and facts.packages[name].upstream in entry.versions)
    )
