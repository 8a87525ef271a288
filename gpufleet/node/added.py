"""Which packages a role's entry in the host's record counts as gpufleet's own. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gpufleet.facts.model import NodeFacts

Entry = Mapping[str, Any]


def carried(old: Entry) -> dict[str, Any]:
    """What an entry says of added packages, before those of this run: as `old` says it."""
    if not old:
        return {"added": [], "unsure": []}
    there = {key: old[key] for key in ("added", "unsure") if key in old}
    return {"added": [], **there}


def with_added(entry: Entry, names: Collection[str], old: Entry, facts: NodeFacts) -> Entry:
    """`entry` with `names`, which transactions of gpufleet brought; `facts` are those of `old`."""
    if not names:
        return entry
    left = [name for name in unsure(old, facts) if name not in names]
    return {**entry, "added": sorted({*entry.get("added", ()), *names}), "unsure": left}


def unsure(entry: Entry, facts: NodeFacts) -> tuple[str, ...]:
    """Those of the added packages that may be another's, who installed them meanwhile.

    Earlier versions of gpufleet counted every package that came between two looks. Of their entries
    (without `unsure`), what was asked for by name, or is there in the entry's version, is sure.
    """
    if "unsure" in entry:
        return tuple(entry["unsure"])
    versions = {entry.get("version"), entry.get("dcgm")}
    named = entry.get("packages") or {}
    return tuple(
        name
        for name in entry.get("added", ())
        if name not in named
        and not (name in facts.packages and facts.packages[name].upstream in versions)
    )
