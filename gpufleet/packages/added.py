"""Which packages a role's entry in the host's record counts as gpufleet's own. Pure."""

from __future__ import annotations

from collections.abc import Collection

from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import AnyEntry, Entry


def carried(entry: AnyEntry, old: Entry) -> AnyEntry:
    """`entry` with the packages that were added before this run: as `old` names them."""
    if not old.exists:
        return entry.model_copy(update={"added": [], "unsure": []})
    there = {} if old.unsure is None else {"unsure": old.unsure}
    return entry.model_copy(update={"added": old.added, **there})


def with_added(entry: AnyEntry, names: Collection[str], old: Entry, facts: NodeFacts) -> AnyEntry:
    """`entry` with `names`, which transactions of gpufleet brought; `facts` are those of `old`."""
    if not names:
        return entry
    left = [name for name in unsure(old, facts) if name not in names]
    return entry.model_copy(update={"added": sorted({*entry.added, *names}), "unsure": left})


def unsure(entry: Entry, facts: NodeFacts) -> tuple[str, ...]:
    """Those of the added packages that may be another's, who installed them meanwhile.

    Earlier versions of gpufleet counted every package that came between two looks. Of their entries
    (without `unsure`), what was asked for by name, or is there in the entry's version, is sure.
    """
    if entry.unsure is not None:
        return tuple(entry.unsure)
    return tuple(
        name
        for name in entry.added
        if name not in entry.packages
        and not (name in facts.packages and facts.packages[name].upstream in entry.versions)
    )
