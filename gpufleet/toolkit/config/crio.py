"""CRI-O: our drop-in with the nvidia runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.merge import merged
from gpufleet.toolkit.config.edits import Data, lookup
from gpufleet.toolkit.config.model import DesiredRuntime, Merged, Path, Record
from gpufleet.toolkit.config.tables import (
    Wanted,
    base_runtime,
    is_ours,
    merge_settings,
    parsed,
    unmerge_settings,
    without_zeros,
)
from gpufleet.toolkit.findings import config as found

DROP_IN = "/etc/crio/crio.conf.d/99-nvidia.toml"
RUNTIME: Path = ("crio", "runtime")
# These belong to the base runtime's binary (crio.conf(5), table crio.runtime.runtimes).
NOT_INHERITED = frozenset({"runtime_path", "runtime_type", "default_annotations"})


def merge(text: str | None, desired: DesiredRuntime, record: Record | None = None) -> Merged:
    """The drop-in with the `desired` settings; the user's files are never changed.

    The runtime inherits from CRI-O's default runtime in `desired.effective` (`crio status config`,
    or all its files): CRI-O's packages set monitor_path, and pods hang without it.
    """
    done = record or Record()

    def wanted_of(data: Data) -> Wanted:
        return _wanted(data, desired, done)

    return merge_settings(text, "", desired, done, wanted_of, "CRI-O")


def unmerge(text: str | None, record: Record, file: str = DROP_IN) -> Merged:
    """The drop-in without our recorded settings; None if we created it."""
    # needed by nothing: the file is parsed even where no setting is ours
    return unmerge_settings(text, record, file, "CRI-O", lambda rest, record: {})


def effective(texts: Iterable[str]) -> Data:
    """The configuration of crio.conf and its drop-ins, in CRI-O's order (lexical, main first)."""
    data: Data = {}
    for text in texts:
        data = merged(data, parsed(text))
    return data


def _wanted(data: Data, desired: DesiredRuntime, record: Record) -> Wanted:
    effective = lookup(desired.effective, RUNTIME, {})
    tables = (lookup(data, RUNTIME, {}), effective)
    name, base = _base(effective, desired.name, record.inherits)
    wanted: dict[Path, Any] = {}
    notes: list[Finding] = []
    path: Path = (*RUNTIME, "runtimes", desired.name)
    entries = (lookup(table, ("runtimes", desired.name)) for table in tables)
    there = next((entry for entry in entries if isinstance(entry, dict)), None)
    if there is None or is_ours(data, path, record):
        wanted[path] = {"runtime_path": desired.binary, "runtime_type": "oci", **base}
        if not effective:
            notes.append(found.BASE_UNKNOWN(runtime="CRI-O", name=desired.name, file=desired.file))
    else:
        notes.append(_compare(there, desired))
    if desired.default:
        path = (*RUNTIME, "default_runtime")
        old = next((value for t in tables if (value := lookup(t, ("default_runtime",)))), None)
        if old != desired.name or is_ours(data, path, record):
            wanted[path] = desired.name
        if old not in (None, desired.name, "runc", "crun"):
            notes.append(found.DEFAULT_REPLACED(file=desired.file, old=old, name=desired.name))
    return Wanted(wanted, tuple(notes), name)


def _base(effective: Data, own: str, inherited: str) -> tuple[str, Data]:
    """The runtime that ours inherits from, and the inherited settings."""
    runtimes = lookup(effective, ("runtimes",), {})
    default = str(lookup(effective, ("default_runtime",), ""))
    name = base_runtime(runtimes, (inherited, default), own, lambda entry: True)
    base = without_zeros(runtimes.get(name, {}))
    return name, {key: value for key, value in base.items() if key not in NOT_INHERITED}


def _compare(entry: Data, desired: DesiredRuntime) -> Finding:
    path = entry.get("runtime_path", "")
    if path != desired.binary:
        difference = f"runtime_path = {path or 'not set'}"
        return found.RUNTIME_KEPT(file=desired.file, name=desired.name, difference=difference)
    return found.RUNTIME_ADOPTED(file=desired.file, name=desired.name)
