"""CRI-O: our drop-in with the nvidia runtime."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.formats.edits import Data, lookup_path
from gpufleet.formats.model import EditRecord, Merged, Path
from gpufleet.toolkit.config.desired import DesiredRuntime
from gpufleet.toolkit.config.layers import RUNTIME_PLACES, Layers
from gpufleet.toolkit.config.tables import (
    WantedTables,
    adopted_runtime,
    base_runtime,
    is_our_value,
    merge_settings,
    parse_tables,
    unmerge_settings,
    without_zeros,
)

CRIO_DROP_IN = "/etc/crio/crio.conf.d/99-nvidia.toml"
RUNTIME_TABLE: Path = ("crio", "runtime")
RUNTIMES, DEFAULT, _ = RUNTIME_PLACES["crio"]
_CONMON_IN_PATH = ("conmon", "/usr/bin/conmon", "/usr/local/bin/conmon", "/bin/conmon")
# CRI-O's default of each release (https://github.com/cri-o/cri-o, config_linux.go, 2026-11).
_DEFAULT_ROOTS = ("/run/crun", "/run/runc")
# These belong to the base runtime's binary (crio.conf(5), table crio.runtime.runtimes);
# inherit_default_runtime replaces the binary by that of the default runtime.
NOT_INHERITED = frozenset(
    {
        "runtime_path", "runtime_type", "runtime_config_path", "platform_runtime_paths",
        "inherit_default_runtime", "default_annotations",
    }
)  # fmt: skip


def merge_crio(
    text: str | None, desired: DesiredRuntime, record: EditRecord | None = None
) -> Merged:
    """The drop-in with the `desired` settings; the user's files are never changed.

    The runtime inherits from CRI-O's default runtime if that is runc or crun, else from one that
    is: CRI-O's packages set monitor_path, and pods hang without it. If no file has a runtime,
    CRI-O finds all programs in PATH.
    """
    done = record or EditRecord()
    return merge_settings(text, "", desired, done, lambda data: _wanted(data, desired, done))


def unmerge_crio(text: str | None, record: EditRecord, file: str = CRIO_DROP_IN) -> Merged:
    """The drop-in without our recorded settings, or None if we created it."""
    # nothing depends on it: the file is parsed even if no setting is ours
    return unmerge_settings(text, record, file, lambda rest: {})


def read_crio_layers(texts: Mapping[str, str], main: str) -> Layers:
    """The table crio.runtime of crio.conf and of every file below its folder, in CRI-O's order.

    CRI-O replaces the whole entry of a runtime that a later file names again.
    """
    folder = posixpath.dirname(CRIO_DROP_IN) + "/"
    names = [main, *sorted(name for name in texts if name.startswith(folder) and name != main)]
    tables: list[tuple[str, Data]] = []
    later: set[str] = set()
    for name in reversed([name for name in names if name in texts]):
        table = lookup_path(parse_tables(texts[name]), RUNTIME_TABLE, {})
        runtimes = lookup_path(table, RUNTIMES)
        if isinstance(runtimes, dict):
            table = {**table, "runtimes": {k: v for k, v in runtimes.items() if k not in later}}
            later |= set(runtimes)
        if table:
            tables.insert(0, (name, table))
    return Layers(tuple(tables))


def _wanted(data: Data, desired: DesiredRuntime, record: EditRecord) -> WantedTables:
    own = lookup_path(data, RUNTIME_TABLE, {})
    others = desired.layers.without(desired.file)
    layers = Layers((*others.files, (desired.file, own)))
    name, base = _base(layers.table, desired.name, record.inherits)
    wanted: dict[Path, Any] = {}
    notes: list[Finding] = []
    place = (*RUNTIMES, desired.name)
    path: Path = (*RUNTIME_TABLE, *place)
    theirs = others if is_our_value(data, path, record) else layers
    ours = {"runtime_path": desired.binary, "runtime_type": "oci", **base}
    there = theirs.entry(place)
    if there is None:
        wanted[path] = ours
    else:
        there = {"monitor_path": lookup_path(layers.table, ("conmon",)), **there}
        notes.append(adopted_runtime(there, ours, _equivalent, theirs.file_of(place), desired.name))
    if desired.default:
        path = (*RUNTIME_TABLE, *DEFAULT)
        if lookup_path(layers.table, DEFAULT) != desired.name or is_our_value(data, path, record):
            wanted[path] = desired.name
    return WantedTables(wanted, tuple(notes), name)


def _base(table: Data, own: str, inherited: str) -> tuple[str, Data]:
    """The runtime that ours inherits from, and the inherited settings."""
    runtimes = lookup_path(table, RUNTIMES)
    runtimes = runtimes if isinstance(runtimes, dict) else {}
    others = {name: entry for name, entry in runtimes.items() if name != own}
    default = str(lookup_path(table, DEFAULT, ""))
    fitting = {name: entry for name, entry in others.items() if _is_runc(name, entry)}
    name = base_runtime(fitting, (inherited, default), own, lambda entry: True)
    if not name:  # the program that monitors is the same for all runtimes
        paths = (lookup_path(entry, ("monitor_path",)) for entry in others.values())
        return "", next(({"monitor_path": path} for path in paths if path), {})
    base = without_zeros(fitting[name])
    return name, {key: value for key, value in base.items() if key not in NOT_INHERITED}


def _is_runc(name: str, entry: Any) -> bool:
    """True if an entry runs runc or crun: CRI-O looks for its name in PATH if it has no path."""
    if not isinstance(entry, dict) or entry.get("runtime_type") not in (None, "", "oci"):
        return False
    return posixpath.basename(str(entry.get("runtime_path") or name)) in ("runc", "crun")


def _equivalent(path: Path, theirs: Any, ours: Any) -> bool:
    """True if another value than ours has the same effect.

    Without a path CRI-O looks for conmon in PATH.
    """
    if path == ("monitor_path",):
        return not theirs and ours in _CONMON_IN_PATH
    if path == ("runtime_root",):
        return not theirs and ours in _DEFAULT_ROOTS
    return path == ("runtime_type",) and not theirs
