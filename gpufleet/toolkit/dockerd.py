"""dockerd's options: keys of daemon.json and the equivalent flags (dockerd.yaml)."""

from __future__ import annotations

from datetime import date
from functools import cached_property
from typing import Literal

from gpufleet.core.entries import Entry, entry_loader


class DockerdKey(Entry):
    """One key of daemon.json."""

    key: str
    kind: Literal["boolean", "number", "string", "list", "map"]
    flags: tuple[str, ...] = ()
    both: bool = False  # dockerd merges the key and the flag; otherwise it does not start


class DockerdOptions(Entry):
    """dockerd.yaml"""

    as_of: date
    source: str
    keys: tuple[DockerdKey, ...]

    @cached_property
    def exclusive_flags(self) -> dict[str, tuple[str, ...]]:
        """Flag -> the keys of daemon.json that conflict with it."""
        found: dict[str, tuple[str, ...]] = {}
        for entry in self.keys:
            for flag in () if entry.both else entry.flags:
                found[flag] = (*found.get(flag, ()), entry.key)
        return found


dockerd_options = entry_loader(DockerdOptions, "toolkit/dockerd")
