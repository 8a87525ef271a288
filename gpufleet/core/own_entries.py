"""Names the user's own entries of the catalog, for `plan` and `gpufleet catalog`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpufleet.core.data import read_shipped_data
from gpufleet.core.findings import Finding
from gpufleet.core.findings.own_catalog import OWN_ENTRIES
from gpufleet.core.names import list_names
from gpufleet.core.own_catalog import (
    IDENTITIES,
    OWN_FILES,
    SHOWN_CHARS,
    entry_name,
    read_own_catalog,
    shown_name,
)

SHOWN_ENTRIES = 12


def own_entries() -> list[Finding]:
    """The finding with the names of all own entries, or [] without any."""
    files = read_own_catalog().files
    names = [
        f"{file} {said}"
        for file, name in OWN_FILES.items()
        if name in files
        for said in _entries(read_shipped_data(name), files[name], "")
    ]
    return [OWN_ENTRIES(entries=list_names(names, SHOWN_ENTRIES))] if names else []


def _entries(shipped: Any, own: Any, place: str) -> Iterator[str]:
    """Each entry, such as `branches[625] (new)`: down to entries of lists, and to values."""
    key = place.rpartition(".")[2]
    if isinstance(own, dict) and own and (shipped is None or isinstance(shipped, dict)):
        for name, value in own.items():
            step = str(name)[:SHOWN_CHARS]
            before = shipped.get(name) if shipped else None
            yield from _entries(before, value, f"{place}.{step}" if place else step)
    elif key in IDENTITIES and isinstance(own, list):
        names = [entry_name(entry, IDENTITIES[key]) for entry in shipped or ()]
        for entry in own:
            name = entry_name(entry, IDENTITIES[key])
            shown = shown_name(key, name)[:SHOWN_CHARS]
            yield f"{place}[{shown}]{'' if name in names else ' (new)'}"
    else:
        yield place if shipped is not None else f"{place} (new)"
