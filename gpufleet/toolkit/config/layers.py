"""The configuration files of one runtime, in the order in which the runtime merges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from gpufleet.core.merge import merge_mappings
from gpufleet.formats.edits import Data, has_path, lookup_path
from gpufleet.formats.model import Path


class Places(NamedTuple):
    """Paths in a runtime's table of the settings that gpufleet changes."""

    runtimes: Path
    default: Path
    cdi: Path  # (): the runtime has no such setting


RUNTIME_PLACES: Mapping[str, Places] = {
    "docker": Places(("runtimes",), ("default-runtime",), ("features", "cdi")),
    "containerd": Places(
        ("containerd", "runtimes"), ("containerd", "default_runtime_name"), ("enable_cdi",)
    ),
    "crio": Places(("runtimes",), ("default_runtime",), ()),
}


@dataclass(frozen=True, slots=True)
class Layers:
    """Path and table of each file that the runtime reads; a later file wins."""

    files: tuple[tuple[str, Data], ...] = ()

    @property
    def table(self) -> Data:
        """All files together."""
        tables = (table for _, table in self.files)
        return reduce(merge_mappings, tables, {})

    @property
    def last(self) -> str:
        """Path of the last file, which wins, or ""."""
        return self.files[-1][0] if self.files else ""

    def file_of(self, place: Path) -> str:
        """Path of the file whose value counts, or "" if no file sets it."""
        return next((file for file, table in reversed(self.files) if has_path(table, place)), "")

    def without(self, path: str) -> Layers:
        return Layers(tuple(layer for layer in self.files if layer[0] != path))

    def entry(self, place: Path) -> Data | None:
        """The table at a place, or None."""
        found = lookup_path(self.table, place)
        return found if isinstance(found, dict) else None
