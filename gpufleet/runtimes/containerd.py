"""containerd's configuration, versions 1 to 4: the nvidia runtime, the default one, and CDI.

We append tables to the file itself. A drop-in of our own is used only where the main file imports
one and containerd merges imports key by key (2.1 and newer): before, an import replaces a
plugin's whole table, and a drop-in would have to repeat, and so freeze, all of the user's settings.
"""

from __future__ import annotations

import posixpath
from typing import Any

from gpufleet.findings import Finding
from gpufleet.findings import toolkit as found
from gpufleet.runtimes.edits import Data, NotUnderstood, has, lookup
from gpufleet.runtimes.model import Merged, Path, Record, RuntimeWish
from gpufleet.runtimes.tables import (
    Wanted,
    base_runtime,
    is_ours,
    merge_tables,
    parse_effective,
    unmerge_tables,
)
from gpufleet.runtimes.tomltext import TOML

# The CRI plugin's name per version of the configuration file (containerd docs, PLUGINS.md).
CRI = {
    1: "cri",
    2: "io.containerd.grpc.v1.cri",
    3: "io.containerd.cri.v1.runtime",
    4: "io.containerd.cri.v1.runtime",
}
# Names under which `disabled_plugins` can name it or, from version 3 on, one of its parts.
CRI_NAMES = frozenset({*CRI.values(), "io.containerd.cri.v1.images"})
SHIM = "io.containerd.runc.v2"
DROP_IN = "99-gpufleet-nvidia.toml"


def merge(
    text: str | None, wish: RuntimeWish, record: Record | None = None, main: str | None = None
) -> Merged:
    """The file with what `wish` asks for. `main` is the main file's text when `text` is a drop-in.

    A file that does not exist is created with the version `wish.new_version`.
    """
    version = file_version(main) if main is not None else wish.new_version
    skeleton = f"version = {version}\n"
    done = record or Record()
    outer = parse_effective(main or "")

    def wanted_of(data: Data) -> Wanted:
        return _wanted(data, outer, wish, done)

    return merge_tables(text, skeleton, wish, done, wanted_of, "containerd")


def unmerge(text: str | None, record: Record, file: str = "config.toml") -> Merged:
    """The file without what the record says is ours; None where we had created it."""
    return unmerge_tables(text, record, file, "containerd")


def file_version(text: str) -> int:
    """The configuration version that containerd takes the file for; 1 where it names none."""
    version = parse_effective(text).get("version", 1)
    return version if isinstance(version, int) else 1


def drop_in(text: str | None, config_path: str, deep_merge: bool) -> str | None:
    """Path of our drop-in, where containerd reads one and merges it key by key; else None."""
    if text is None or not deep_merge:
        return None
    imports = parse_effective(text).get("imports", [])
    for entry in imports if isinstance(imports, list) else []:
        folder, pattern = posixpath.split(str(entry))
        if pattern == "*.toml" and "*" not in folder:
            return posixpath.join(posixpath.dirname(config_path), folder, DROP_IN)
    return None


def cri_disabled(text: str | None) -> bool:
    """Whether the file switches the CRI plugin off: no kubelet uses this containerd."""
    disabled = parse_effective(text or "").get("disabled_plugins", [])
    return isinstance(disabled, list) and any(
        isinstance(name, str) and name in CRI_NAMES for name in disabled
    )


def cri_table(data: Data) -> Data:
    """The CRI plugin's table, whichever version the configuration has."""
    plugins = data.get("plugins")
    for name in CRI.values():
        table = lookup(plugins, (name,))
        if isinstance(table, dict):
            return table
    return {}


def _wanted(data: Data, outer: Data, wish: RuntimeWish, record: Record) -> Wanted:
    """Settings that must hold because of us. `outer`: the main file, where `data` is a drop-in."""
    version = data.get("version", 1)
    plugin = CRI.get(version) if isinstance(version, int) else None
    if plugin is None:
        raise NotUnderstood(f"configuration version {version!r} is not known")
    cri: Path = ("plugins", plugin)
    own = lookup(data, cri, {})
    above = cri_table(outer)
    effective = cri_table(parse_effective(wish.effective))
    if not isinstance(own, dict):
        raise NotUnderstood(f"plugins.{plugin} is not a table")
    wanted: dict[Path, Any] = {}
    notes: list[Finding] = []
    runtime = (*cri, "containerd", "runtimes", wish.name)
    there = _entry(own, wish.name) or _entry(above, wish.name) or _entry(effective, wish.name)
    if there is None or is_ours(data, runtime, record):
        name, base = _base((own, above, effective), wish.name)
        wanted[runtime] = _runtime(base, wish)
        wanted |= _built_in(cri, own, effective, name, wish)
    else:
        notes.append(_compare(there, (own, above, effective), wish))
    default = (*cri, "containerd", "default_runtime_name")
    if wish.default:
        old = next(
            (t["containerd"]["default_runtime_name"] for t in (own, above, effective)
             if has(t, ("containerd", "default_runtime_name"))), None,
        )  # fmt: skip
        if old != wish.name or is_ours(data, default, record):
            wanted[default] = wish.name
        if old not in (None, wish.name, "runc"):
            notes.append(found.DEFAULT_REPLACED(file=wish.file, old=old, name=wish.name))
    cdi = (*cri, "enable_cdi")
    explicit = next((t["enable_cdi"] for t in (own, above) if "enable_cdi" in t), None)
    if wish.cdi and (explicit is None or is_ours(data, cdi, record)):
        wanted[cdi] = True
    elif wish.cdi and explicit is False:
        notes.append(found.CDI_SWITCHED_OFF(file=wish.file, name="nvidia.com/gpu"))
    return wanted, tuple(notes)


def _entry(cri: Data, name: str) -> Data | None:
    entry = lookup(cri, ("containerd", "runtimes", name))
    return entry if isinstance(entry, dict) else None


def _base(tables: tuple[Data, ...], own: str) -> tuple[str, Data]:
    """The runc-like runtime that ours takes its options from: from the file before the dump."""
    defaults = [lookup(table, ("containerd", "default_runtime_name"), "") for table in tables]
    default = next((name for name in defaults if name), "")
    for table in tables:
        runtimes = lookup(table, ("containerd", "runtimes"), {})
        name = base_runtime(runtimes, default, own, _is_runc) if isinstance(runtimes, dict) else ""
        if name:
            return name, runtimes[name]
    return "runc", {}


def _is_runc(entry: Data) -> bool:
    return str(entry.get("runtime_type", SHIM)).startswith("io.containerd.runc.")


def _runtime(base: Data, wish: RuntimeWish) -> Data:
    """Our entry: what the base runtime sets, with our binary. Empty values say nothing: left out."""
    entry = {
        key: value
        for key, value in base.items()
        if key not in ("runtime_type", "options") and value not in ("", 0, False, [], {})
    }
    entry["runtime_type"] = SHIM
    options = {
        key: value
        for key, value in lookup(base, ("options",), {}).items()
        if value not in ("", 0, [], {})
    }
    return {**entry, "options": {**options, "BinaryName": wish.binary}}


def _built_in(
    cri: Path, own: Data, effective: Data, base: str, wish: RuntimeWish
) -> dict[Path, Any]:
    """The runtimes that containerd 1.x forgets as soon as a file names one.

    1.x reads the table of runtimes into a fresh map: with only `nvidia` in the file, `runc`, which
    is built in and the default, is gone, and the CRI plugin does not load (run with 1.6.20).
    """
    if wish.fills_maps or lookup(own, ("containerd", "runtimes")):
        return {}
    known = _entry(effective, base) or {}
    entry: Data = {"runtime_type": known.get("runtime_type") or SHIM}
    options = {
        key: value
        for key, value in lookup(known, ("options",), {}).items()
        if value not in ("", 0, False, [], {})
    }
    if options:
        entry["options"] = options
    return {(*cri, "containerd", "runtimes", base): entry}


def _compare(entry: Data, tables: tuple[Data, ...], wish: RuntimeWish) -> Finding:
    """What to say of a runtime that somebody else has written."""
    _, base = _base(tables, wish.name)
    binary = lookup(entry, ("options", "BinaryName"), "")
    differing = []
    if binary not in (wish.binary, posixpath.basename(wish.binary)):
        differing.append(f"BinaryName = {binary or 'not set'}")
    if not _is_runc(entry):
        differing.append(f"runtime_type = {entry.get('runtime_type')}")
    if differing:
        return found.RUNTIME_KEPT(file=wish.file, name=wish.name, difference=", ".join(differing))
    ours = bool(lookup(entry, ("options", "SystemdCgroup"), False))
    theirs = bool(lookup(base, ("options", "SystemdCgroup"), False))
    if ours != theirs:
        return found.CGROUP_MISMATCH(
            file=wish.file, name=wish.name, base="runc", ours=str(ours).lower(),
            theirs=str(theirs).lower(),
        )  # fmt: skip
    return found.RUNTIME_ADOPTED(file=wish.file, name=wish.name)


__all__ = ["CRI", "TOML", "cri_disabled", "drop_in", "file_version", "merge", "unmerge"]
