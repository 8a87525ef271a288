"""containerd's configuration, versions 1 to 4: the nvidia runtime, the default one, and CDI.

gpufleet appends tables to the file itself. It uses a drop-in only if the main file imports one and
containerd merges imports key by key (2.1 and newer): older versions replace a plugin's whole table
by an import, and a drop-in would have to repeat, and so freeze, all of the user's settings.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.merge import merged
from gpufleet.toolkit.config.edits import Data, NotUnderstood, has, lookup
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

# The CRI plugin's name per version of the configuration file (containerd docs, PLUGINS.md).
CRI = {
    1: "cri",
    2: "io.containerd.grpc.v1.cri",
    3: "io.containerd.cri.v1.runtime",
    4: "io.containerd.cri.v1.runtime",
}
# Names of it, and from version 3 on of its parts, in `disabled_plugins`.
NEWEST = max(CRI)
CRI_NAMES = frozenset({*CRI.values(), "io.containerd.cri.v1.images"})
SHIM = "io.containerd.runc.v2"
BUILT_IN = "runc"  # runtime and default if no file names one
VERSION: Path = ("version",)
DROP_IN = "99-gpufleet-nvidia.toml"


def merge(
    text: str | None, desired: DesiredRuntime, record: Record | None = None, main: str | None = None
) -> Merged:
    """The file with the `desired` settings. `main`: the main file's text if `text` is a drop-in.

    A file that does not exist is created with the version `desired.new_version`.
    """
    version = file_version(main) if main is not None else desired.new_version
    skeleton = f"version = {version}\n"
    done = record or Record()
    outer = parsed(main)

    def wanted_of(data: Data) -> Wanted:
        return _wanted(data, outer, desired, done)

    return merge_settings(text, skeleton, desired, done, wanted_of, "containerd")


def unmerge(
    text: str | None, record: Record, file: str = "config.toml", fills_maps: bool = False
) -> Merged:
    """The file without our recorded settings; None if we created it.

    Settings that the user's own depend on stay: the version that they are written in, and the
    built-in runtime that containerd 1.x drops (see `fills_maps` of DesiredRuntime).
    """

    def needed_by(rest: Data, record: Record) -> dict[Path, str]:
        return _needed_by(rest, record, fills_maps)

    return unmerge_settings(text, record, file, "containerd", needed_by)


def _needed_by(rest: Data, record: Record, fills_maps: bool) -> dict[Path, str]:
    """Our settings that the `rest` of a file depends on, and what needs them."""
    needed: dict[Path, str] = {}
    others = [key for key in rest if key != VERSION[0]]
    if VERSION in record.values and VERSION[0] not in rest and others:
        needed[VERSION] = ", ".join(others)
    for path in record.values:
        if fills_maps or path[-2:] != ("runtimes", record.inherits):
            continue
        runtimes = lookup(rest, path[:-1], {})
        default = lookup(rest, (*path[:-2], "default_runtime_name"), BUILT_IN)
        if runtimes and path[-1] == default and default not in runtimes:
            needed[path] = ", ".join(runtimes)
    return needed


def file_version(text: str) -> int:
    """The configuration version that containerd assumes for the file; 1 if it names none."""
    version = parsed(text).get("version", 1)
    return version if isinstance(version, int) else 1


def drop_in(text: str | None, config_path: str, deep_merge: bool) -> str | None:
    """Path of our drop-in if containerd reads one and merges it key by key; else None."""
    if text is None or not deep_merge:
        return None
    imports = parsed(text).get("imports", [])
    for entry in imports if isinstance(imports, list) else []:
        folder, pattern = posixpath.split(str(entry))
        if pattern == "*.toml" and "*" not in folder:
            return posixpath.join(posixpath.dirname(config_path), folder, DROP_IN)
    return None


def imported(main: str | None, config_path: str, known: Iterable[str]) -> list[str]:
    """The `known` paths that the main file imports, in containerd's order."""
    folder = posixpath.dirname(config_path)
    found_paths: list[str] = []
    entries = parsed(main).get("imports", [])
    for entry in entries if isinstance(entries, list) else []:
        pattern = posixpath.normpath(posixpath.join(folder, str(entry)))
        matching = sorted(path for path in known if _matches(path, pattern))
        found_paths += [path for path in matching if path not in found_paths]
    return found_paths


def _matches(path: str, pattern: str) -> bool:
    """Like Go's filepath.Glob: a star does not match a slash."""
    same_depth = path.count("/") == pattern.count("/")
    return same_depth and fnmatch.fnmatchcase(path, pattern)


def effective(
    main: str | None, imports: Iterable[str], deep_merge: bool, newest_version: int = NEWEST
) -> Data:
    """The CRI plugin's configuration of a main file and the files it imports, in their order.

    Before 2.1 an import that names the plugin replaces its whole table. A program reads the names
    of the versions up to its `newest_version`.
    """
    table = cri_table(parsed(main), newest_version)
    for text in imports:
        other = cri_table(parsed(text), newest_version)
        table = merged(table, other) if deep_merge or not other else other
    return {"plugins": {CRI[3]: table}} if table else {}


def replaced_by(
    imports: Mapping[str, str], deep_merge: bool, newest_version: int = NEWEST
) -> str | None:
    """Path of an imported file because of which containerd ignores the main file's CRI settings."""
    if deep_merge:
        return None
    tables = {path: cri_table(parsed(text), newest_version) for path, text in imports.items()}
    return next((path for path, table in tables.items() if table), None)


def cri_disabled(text: str | None) -> bool:
    """Whether the file disables the CRI plugin: no kubelet uses this containerd."""
    disabled = parsed(text).get("disabled_plugins", [])
    return isinstance(disabled, list) and any(
        isinstance(name, str) and name in CRI_NAMES for name in disabled
    )


def cri_table(data: Mapping[str, Any], newest_version: int = NEWEST) -> Data:
    """The CRI plugin's table, of any configuration version up to the newest."""
    plugins = data.get("plugins")
    for name in (name for version, name in CRI.items() if version <= newest_version):
        table = lookup(plugins, (name,))
        if isinstance(table, dict):
            return table
    return {}


def _wanted(data: Data, outer: Data, desired: DesiredRuntime, record: Record) -> Wanted:
    """The settings that we require. `outer`: the main file, if `data` is a drop-in."""
    wanted: dict[Path, Any] = {}
    if not data or is_ours(data, VERSION, record):  # blank: containerd would assume version 1
        wanted[VERSION] = record.values.get(VERSION, desired.new_version)
    version = wanted.get(VERSION) or data.get("version", 1)
    if not isinstance(version, int) or version not in CRI:
        raise NotUnderstood(f"configuration version {version!r} is unknown")
    plugin = CRI[min(version, desired.newest_version)]
    cri: Path = ("plugins", plugin)
    own = lookup(data, cri, {})
    if not isinstance(own, dict):
        raise NotUnderstood(f"plugins.{plugin} is not a table")
    tables = (own, cri_table(outer, desired.newest_version), cri_table(desired.effective))
    name, base = _base(tables, desired.name, record.inherits)
    notes: list[Finding] = []
    runtime = (*cri, "containerd", "runtimes", desired.name)
    there = next((entry for table in tables if (entry := _entry(table, desired.name))), None)
    if there is None or is_ours(data, runtime, record):
        wanted |= _built_in(data, cri, tables[2], name, desired, record)
        wanted[runtime] = _runtime(base, desired)
    else:
        notes.append(_compare(there, name, base, desired))
    if desired.default:
        path = (*cri, "containerd", "default_runtime_name")
        old = _first(tables, ("containerd", "default_runtime_name"))
        if old != desired.name or is_ours(data, path, record):
            wanted[path] = desired.name
        if old not in (None, desired.name, "runc"):
            notes.append(found.DEFAULT_REPLACED(file=desired.file, old=old, name=desired.name))
    if desired.cdi:
        path = (*cri, "enable_cdi")
        explicit = _first(tables[:2], ("enable_cdi",))
        if explicit is None or is_ours(data, path, record):
            wanted[path] = True
        elif explicit is False:
            notes.append(found.CDI_SWITCHED_OFF(file=desired.file, name="nvidia.com/gpu"))
    return Wanted(wanted, tuple(notes), name)


def _first(tables: tuple[Data, ...], path: Path) -> Any:
    """The value in the first table with such a setting; None if no table has it."""
    return next((lookup(table, path) for table in tables if has(table, path)), None)


def _entry(cri: Data, name: str) -> Data | None:
    entry = lookup(cri, ("containerd", "runtimes", name))
    return entry if isinstance(entry, dict) else None


def _base(tables: tuple[Data, ...], own: str, inherited: str) -> tuple[str, Data]:
    """The runc-like runtime whose options ours inherits: from the file before the dump.

    `inherited` is the one of the last run: the default may be ours since.
    """
    default = _first(tables, ("containerd", "default_runtime_name"))
    preferred = tuple(str(name) for name in (inherited, default) if name)
    for table in tables:
        runtimes = lookup(table, ("containerd", "runtimes"))
        if isinstance(runtimes, dict) and (
            name := base_runtime(runtimes, preferred, own, _is_runc)
        ):
            return name, runtimes[name]
    return "runc", {}


def _is_runc(entry: Data) -> bool:
    return str(entry.get("runtime_type") or SHIM).startswith("io.containerd.runc.")


def _runtime(base: Data, desired: DesiredRuntime) -> Data:
    """Our entry: the settings of the base runtime, with our binary."""
    entry = without_zeros({key: value for key, value in base.items() if key != "options"})
    options = without_zeros(lookup(base, ("options",), {}))
    return {**entry, "runtime_type": SHIM, "options": {**options, "BinaryName": desired.binary}}


def _built_in(
    data: Data, cri: Path, effective: Data, base: str, desired: DesiredRuntime, record: Record
) -> dict[Path, Any]:
    """The runtime that containerd 1.x drops as soon as a file names another one.

    1.x reads the table of runtimes into an empty map: with only `nvidia` in the file, the built-in
    default `runc` is missing, and the CRI plugin does not load (tested with 1.6.20).
    """
    path = (*cri, "containerd", "runtimes", base)
    if is_ours(data, path, record):
        return {path: record.values[path]}
    if desired.fills_maps or lookup(data, path[:-1]):
        return {}
    known = _entry(effective, base) or {}
    entry: Data = {"runtime_type": known.get("runtime_type") or SHIM}
    options = without_zeros(lookup(known, ("options",), {}))
    return {path: {**entry, "options": options} if options else entry}


def _compare(entry: Data, base_name: str, base: Data, desired: DesiredRuntime) -> Finding:
    """The finding about an existing runtime that is not ours."""
    binary = lookup(entry, ("options", "BinaryName"), "")
    differing = []
    if binary not in (desired.binary, posixpath.basename(desired.binary)):
        differing.append(f"BinaryName = {binary or 'not set'}")
    if not _is_runc(entry):
        differing.append(f"runtime_type = {entry.get('runtime_type')}")
    if differing:
        return found.RUNTIME_KEPT(
            file=desired.file, name=desired.name, difference=", ".join(differing)
        )
    ours, theirs = (
        str(bool(lookup(table, ("options", "SystemdCgroup"), False))).lower()
        for table in (entry, base)
    )
    if ours != theirs:
        return found.CGROUP_MISMATCH(
            file=desired.file, name=desired.name, base=base_name, ours=ours, theirs=theirs
        )
    return found.RUNTIME_ADOPTED(file=desired.file, name=desired.name)
