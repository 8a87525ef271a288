"""CRI-O: a drop-in of our own that names the nvidia runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.merge import merged
from gpufleet.toolkit import findings as found
from gpufleet.toolkit.config.edits import Data, lookup
from gpufleet.toolkit.config.model import Merged, Path, Record, RuntimeWish
from gpufleet.toolkit.config.tables import (
    Wanted,
    base_runtime,
    is_ours,
    merge_tables,
    parsed,
    told,
    unmerge_tables,
)

DROP_IN = "/etc/crio/crio.conf.d/99-nvidia.toml"
RUNTIME: Path = ("crio", "runtime")
# These belong to the base runtime's own binary (crio.conf(5), table crio.runtime.runtimes).
NOT_INHERITED = frozenset({"runtime_path", "runtime_type", "default_annotations"})


def merge(text: str | None, wish: RuntimeWish, record: Record | None = None) -> Merged:
    """The drop-in with what `wish` asks for; the user's files are never touched.

    The runtime inherits from CRI-O's default runtime, which `wish.effective` (`crio status
    config`, or all its files) tells: CRI-O's packages set monitor_path, and pods hang without it.
    """
    done = record or Record()

    def wanted_of(data: Data) -> Wanted:
        return _wanted(data, wish, done)

    return merge_tables(text, "", wish, done, wanted_of, "CRI-O")


def unmerge(text: str | None, record: Record, file: str = DROP_IN) -> Merged:
    """The drop-in without what the record says is ours; None where we had created it."""
    return unmerge_tables(text, record, file, "CRI-O")


def effective(texts: Iterable[str]) -> Data:
    """The configuration of crio.conf and its drop-ins, in CRI-O's order (lexical, main first)."""
    data: Data = {}
    for text in texts:
        data = merged(data, parsed(text))
    return data


def _wanted(data: Data, wish: RuntimeWish, record: Record) -> Wanted:
    effective = lookup(wish.effective, RUNTIME, {})
    tables = (lookup(data, RUNTIME, {}), effective)
    name, base = _base(effective, wish.name, record.inherits)
    wanted: dict[Path, Any] = {}
    notes: list[Finding] = []
    path: Path = (*RUNTIME, "runtimes", wish.name)
    entries = (lookup(table, ("runtimes", wish.name)) for table in tables)
    there = next((entry for entry in entries if isinstance(entry, dict)), None)
    if there is None or is_ours(data, path, record):
        wanted[path] = {"runtime_path": wish.binary, "runtime_type": "oci", **base}
        if not effective:
            notes.append(found.BASE_UNKNOWN(runtime="CRI-O", name=wish.name, file=wish.file))
    else:
        notes.append(_compare(there, wish))
    if wish.default:
        path = (*RUNTIME, "default_runtime")
        old = next((value for t in tables if (value := lookup(t, ("default_runtime",)))), None)
        if old != wish.name or is_ours(data, path, record):
            wanted[path] = wish.name
        if old not in (None, wish.name, "runc", "crun"):
            notes.append(found.DEFAULT_REPLACED(file=wish.file, old=old, name=wish.name))
    return Wanted(wanted, tuple(notes), name)


def _base(effective: Data, own: str, inherited: str) -> tuple[str, Data]:
    """The runtime that ours inherits from, and what it inherits."""
    runtimes = lookup(effective, ("runtimes",), {})
    default = str(lookup(effective, ("default_runtime",), ""))
    name = base_runtime(runtimes, (inherited, default), own, lambda entry: True)
    base = told(runtimes.get(name, {}))
    return name, {key: value for key, value in base.items() if key not in NOT_INHERITED}


def _compare(entry: Data, wish: RuntimeWish) -> Finding:
    path = entry.get("runtime_path", "")
    if path != wish.binary:
        difference = f"runtime_path = {path or 'not set'}"
        return found.RUNTIME_KEPT(file=wish.file, name=wish.name, difference=difference)
    return found.RUNTIME_ADOPTED(file=wish.file, name=wish.name)
