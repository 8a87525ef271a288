"""CRI-O: a drop-in of our own that names the nvidia runtime."""

from __future__ import annotations

from typing import Any

from gpufleet.findings import Finding
from gpufleet.findings import toolkit as found
from gpufleet.runtimes.edits import Data, lookup
from gpufleet.runtimes.model import Merged, Path, Record, RuntimeWish
from gpufleet.runtimes.tables import (
    Wanted,
    base_runtime,
    is_ours,
    merge_tables,
    parse_effective,
    unmerge_tables,
)

DROP_IN = "/etc/crio/crio.conf.d/99-nvidia.toml"
RUNTIME: Path = ("crio", "runtime")
# What says how containers run, and not which binary runs them (crio.conf(5), crio.runtime.runtimes).
NOT_INHERITED = frozenset({"runtime_path", "runtime_type", "default_annotations"})


def merge(text: str | None, wish: RuntimeWish, record: Record | None = None) -> Merged:
    """The drop-in with what `wish` asks for; the user's files are never touched.

    The runtime inherits from CRI-O's default runtime, which `wish.effective` (`crio status
    config`) tells: CRI-O's packages set monitor_path there, and pods hang without it.
    """
    done = record or Record()

    def wanted_of(data: Data) -> Wanted:
        return _wanted(data, wish, done)

    return merge_tables(text, "", wish, done, wanted_of, "CRI-O")


def unmerge(text: str | None, record: Record, file: str = DROP_IN) -> Merged:
    """The drop-in without what the record says is ours; None where we had created it."""
    return unmerge_tables(text, record, file, "CRI-O")


def _wanted(data: Data, wish: RuntimeWish, record: Record) -> Wanted:
    effective = lookup(parse_effective(wish.effective), RUNTIME, {})
    own = lookup(data, RUNTIME, {})
    wanted: dict[Path, Any] = {}
    notes: list[Finding] = []
    path: Path = (*RUNTIME, "runtimes", wish.name)
    there = lookup(own, ("runtimes", wish.name)) or lookup(effective, ("runtimes", wish.name))
    if there is None or is_ours(data, path, record):
        wanted[path] = _runtime(effective, wish)
        if not effective:
            notes.append(found.BASE_UNKNOWN(runtime="CRI-O", name=wish.name, file=wish.file))
    else:
        notes.append(_compare(there, wish))
    default = (*RUNTIME, "default_runtime")
    if wish.default:
        old = lookup(own, ("default_runtime",)) or lookup(effective, ("default_runtime",))
        if old != wish.name or is_ours(data, default, record):
            wanted[default] = wish.name
        if old not in (None, "", wish.name, "runc", "crun"):
            notes.append(found.DEFAULT_REPLACED(file=wish.file, old=old, name=wish.name))
    return wanted, tuple(notes)


def _runtime(effective: Data, wish: RuntimeWish) -> Data:
    runtimes = lookup(effective, ("runtimes",), {})
    default = str(lookup(effective, ("default_runtime",), ""))
    name = base_runtime(runtimes, default, wish.name, lambda entry: True)
    base = runtimes.get(name, {})
    entry = {
        key: value
        for key, value in base.items()
        if key not in NOT_INHERITED and value not in ("", 0, False, [], {})
    }
    return {"runtime_path": wish.binary, "runtime_type": "oci", **entry}


def _compare(entry: Data, wish: RuntimeWish) -> Finding:
    path = entry.get("runtime_path", "")
    if path != wish.binary:
        return found.RUNTIME_KEPT(
            file=wish.file, name=wish.name, difference=f"runtime_path = {path or 'not set'}"
        )
    return found.RUNTIME_ADOPTED(file=wish.file, name=wish.name)
