"""containerd's configuration, versions 1 to 4: the nvidia runtime, the default one, and CDI.

gpufleet appends tables to the file itself. It uses a drop-in only if the main file imports one and
containerd merges imports key by key (2.0 and newer): older versions replace a plugin's whole table
by an import, and a drop-in would have to repeat, and so freeze, all of the user's settings.
"""

from __future__ import annotations

import posixpath
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.formats.edits import Data, NotUnderstood, lookup_path
from gpufleet.formats.model import EditRecord, Merged, Path
from gpufleet.toolkit.config.containerd_layers import CRI, cri_table, written_name
from gpufleet.toolkit.config.containerd_options import (
    BINARY_NAME_OPTION,
    DRIVER,
    options_of,
    read_option,
    respell_options,
    with_option,
)
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
from gpufleet.toolkit.findings import config as found

SHIM = "io.containerd.runc.v2"
BUILT_IN = "runc"  # runtime and default if no file names one
VERSION: Path = ("version",)
CONTAINERD_DROP_IN = "99-gpufleet-nvidia.toml"
RUNTIMES, DEFAULT, CDI = RUNTIME_PLACES["containerd"]
# containerd 1.x: the default runtime as a separate table instead of a name.
OLD_DEFAULT: Path = ("containerd", "default_runtime", "runtime_type")


def merge_containerd(
    text: str | None, desired: DesiredRuntime, record: EditRecord | None = None
) -> Merged:
    """The file with the `desired` settings.

    A file that does not exist is created with the version `desired.new_version`.
    """
    skeleton = f"version = {desired.new_version}\n"
    done = record or EditRecord()
    return merge_settings(text, skeleton, desired, done, lambda data: _wanted(data, desired, done))


def unmerge_containerd(
    text: str | None, record: EditRecord, file: str = "config.toml", fills_maps: bool = False
) -> Merged:
    """The file without our recorded settings, or None if we created it.

    Settings that the user's own depend on stay: the version that they are written in, and the
    built-in runtime that containerd 1.x drops (see `fills_maps` of DesiredRuntime).
    """
    return unmerge_settings(text, record, file, lambda rest: _needed_by(rest, record, fills_maps))


def _needed_by(rest: Data, record: EditRecord, fills_maps: bool) -> dict[Path, str]:
    """Our settings that the `rest` of a file depends on, each with the setting that needs it."""
    needed: dict[Path, str] = {}
    others = [key for key in rest if key != VERSION[0]]
    if VERSION in record.values and VERSION[0] not in rest and others:
        needed[VERSION] = ", ".join(others)
    for path in record.values:
        if fills_maps or path[-2:] != ("runtimes", BUILT_IN):
            continue
        runtimes = lookup_path(rest, path[:-1], {})
        default = lookup_path(rest, (*path[:-2], "default_runtime_name"), BUILT_IN)
        if runtimes and path[-1] == default and default not in runtimes:
            needed[path] = ", ".join(runtimes)
    return needed


def containerd_drop_in(text: str | None, config_path: str, deep_merge: bool) -> str | None:
    """Path of our drop-in if containerd reads one and merges it key by key; else None."""
    if text is None or not deep_merge:
        return None
    imports = parse_tables(text).get("imports", [])
    for entry in imports if isinstance(imports, list) else []:
        folder, pattern = posixpath.split(str(entry))
        if pattern == "*.toml" and "*" not in folder:
            return posixpath.join(posixpath.dirname(config_path), folder, CONTAINERD_DROP_IN)
    return None


def _wanted(data: Data, desired: DesiredRuntime, record: EditRecord) -> WantedTables:
    """The settings that we require."""
    wanted: dict[Path, Any] = {}
    if not data or is_our_value(data, VERSION, record):  # blank: containerd would assume version 1
        wanted[VERSION] = record.values.get(VERSION, desired.new_version)
    version = wanted.get(VERSION) or data.get("version", 1)
    if not isinstance(version, int) or version not in CRI:
        raise NotUnderstood(f"configuration version {version!r} is unknown")
    plugin = written_name(data, version, desired.newest_version)
    cri: Path = ("plugins", plugin)
    own = cri_table(data, version, desired.newest_version)
    if not isinstance(lookup_path(data, cri, {}), dict):
        raise NotUnderstood(f"plugins.{plugin} is not a table")
    others = desired.layers.without(desired.file)
    layers = Layers((*others.files, (desired.file, own)))
    name, base = _base(layers.table, desired, record.inherits)
    notes: list[Finding] = []
    place = (*RUNTIMES, desired.name)
    theirs = others if is_our_value(data, cri + place, record) else layers
    entry = _runtime(base, desired)
    there = theirs.entry(place)
    if there is None:
        wanted[cri + place] = entry
    else:
        file = theirs.file_of(place)
        alone = not base and lookup_path(layers.table, DEFAULT) == desired.name
        other = there if alone else base  # the only runtime, and the default: no other to differ
        notes.append(_compare(there, name, other, entry, file, desired))
    wanted = _built_in(data, cri, layers.table, desired, record) | wanted
    if desired.default:
        path = (*cri, *DEFAULT)
        if lookup_path(layers.table, DEFAULT) != desired.name or is_our_value(data, path, record):
            wanted[path] = desired.name
    if desired.cdi:
        path = (*cri, *CDI)
        if lookup_path(layers.table, CDI) is None or is_our_value(data, path, record):
            wanted[path] = True
    return WantedTables(wanted, tuple(notes), name)


def _base(table: Data, desired: DesiredRuntime, inherited: str) -> tuple[str, Data]:
    """The runc-like runtime whose options ours inherits.

    `inherited` is the one of the last run: the default may be ours since.
    """
    old = lookup_path(table, OLD_DEFAULT[:-1])
    if not desired.fills_maps and lookup_path(table, OLD_DEFAULT) and _is_runc(old):
        return BUILT_IN, old
    default = lookup_path(table, DEFAULT)
    preferred = tuple(str(name) for name in (inherited, default) if name)
    runtimes = lookup_path(table, RUNTIMES)
    if isinstance(runtimes, dict) and (
        name := base_runtime(runtimes, preferred, desired.name, _is_runc)
    ):
        return name, runtimes[name]
    return BUILT_IN, {}


def _is_runc(entry: Data) -> bool:
    return str(entry.get("runtime_type") or SHIM).startswith("io.containerd.runc.")


def _runtime(base: Data, desired: DesiredRuntime) -> Data:
    """Our entry: the settings of the base runtime, with our binary."""
    entry = without_zeros({key: value for key, value in base.items() if key != "options"})
    entry |= {"runtime_type": SHIM, "options": without_zeros(options_of(base))}
    if desired.systemd_cgroups:
        entry = with_option(entry, DRIVER, True)
    return with_option(entry, BINARY_NAME_OPTION, desired.binary)


def _built_in(
    data: Data, cri: Path, table: Data, desired: DesiredRuntime, record: EditRecord
) -> dict[Path, Any]:
    """The built-in default, which containerd 1.x drops as soon as a file names another runtime.

    1.x reads the table of runtimes into an empty map: with only `nvidia` in the file, the built-in
    default `runc` is missing, and the CRI plugin does not load (tested with 1.6.20).
    """
    path = (*cri, *RUNTIMES, BUILT_IN)
    if is_our_value(data, path, record):
        return {path: record.values[path]}
    default = lookup_path(table, DEFAULT) or BUILT_IN
    if lookup_path(table, OLD_DEFAULT):
        return {}
    named = lookup_path(table, RUNTIMES) or {}
    if desired.fills_maps or BUILT_IN in named or (default != BUILT_IN and named):
        return {}
    return {path: {"runtime_type": SHIM}}


def _compare(
    there: Data, base_name: str, base: Data, ours: Data, file: str, desired: DesiredRuntime
) -> Finding:
    """The finding about an existing runtime that is not ours: equal to `ours`, or kept."""
    names = (*options_of(ours), DRIVER)
    there, base, ours = (respell_options(runtime, names) for runtime in (there, base, ours))
    whole = adopted_runtime(there, ours, _equivalent, file, desired.name)
    driver = [str(bool(read_option(table, DRIVER))).lower() for table in (there, base)]
    if driver[0] == driver[1]:
        return whole
    alike = with_option(there, DRIVER, driver[1] == "true")
    rest = adopted_runtime(alike, ours, _equivalent, file, desired.name)
    if rest.code != found.RUNTIME_ADOPTED.code:
        return whole
    return found.CGROUP_MISMATCH(
        file=file, name=desired.name, base=base_name, ours=driver[0], theirs=driver[1]
    )


def _equivalent(path: Path, theirs: Any, ours: Any) -> bool:
    """True if another value than ours has the same effect."""
    if path == ("options", BINARY_NAME_OPTION):
        return theirs in (ours, posixpath.basename(ours))
    return path == ("runtime_type",) and _is_runc({path[0]: theirs})
