"""docker's /etc/docker/daemon.json: the nvidia runtime, the default runtime, and CDI."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import date
from functools import cached_property, lru_cache
from typing import Any, Literal

from gpufleet.core.entries import Entry, entry_loader
from gpufleet.core.findings import Finding, Severity
from gpufleet.formats.edits import Data, has_path, lookup_path
from gpufleet.formats.json_text import JSON_FORMAT, duplicate_keys
from gpufleet.formats.model import EditRecord, Merged, Path
from gpufleet.toolkit.config.desired import DesiredRuntime, Reads
from gpufleet.toolkit.config.layers import RUNTIME_PLACES, Layers
from gpufleet.toolkit.config.tables import (
    WantedTables,
    is_our_value,
    merge_settings,
    unmerge_settings,
)
from gpufleet.toolkit.findings import config as found

RUNTIMES, DEFAULT, CDI = RUNTIME_PLACES["docker"]
EVERYTHING = Reads()
BLANK = "{}\n"  # the meaning of an empty file for dockerd
_BOM = "\ufeff"  # newer versions of dockerd accept it; Python's parser does not


class DockerdKey(Entry):
    """One key of daemon.json."""

    key: str
    kind: Literal["boolean", "number", "string", "list", "map"]
    flags: tuple[str, ...] = ()
    both: bool = False  # dockerd merges the key and the flag; otherwise it does not start


class DockerdOptions(Entry):
    """dockerd.yaml: keys of daemon.json and the equivalent flags."""

    as_of: date
    source: str
    keys: tuple[DockerdKey, ...]

    @cached_property
    def exclusive_flags(self) -> dict[str, tuple[str, ...]]:
        """Flag (`-H`, `--host`) -> the keys of daemon.json that conflict with it."""
        conflicts: dict[str, tuple[str, ...]] = {}
        for entry in self.keys:
            for flag in () if entry.both else entry.flags:
                conflicts[flag] = (*conflicts.get(flag, ()), entry.key)
        return conflicts


dockerd_options = entry_loader(DockerdOptions, "toolkit/dockerd")


def merge_docker(
    text: str | None, desired: DesiredRuntime, record: EditRecord | None = None
) -> Merged:
    """daemon.json with the `desired` settings; everything else keeps its place and its bytes.

    `record`: the changes of an earlier merge. A text that cannot be merged is returned unchanged,
    with a blocker among the notes.
    """
    done = record or EditRecord()
    mark, body = _split(text or "")

    def wanted_of(data: Data) -> WantedTables:
        return _wanted(data, body, desired, done)

    start = None if text is None else body
    merged = merge_settings(start, "", desired, done, wanted_of, JSON_FORMAT)
    return _marked(merged, text, mark, desired.reads, desired.file)


def unmerge_docker(
    text: str | None, record: EditRecord, file: str = "daemon.json", reads: Reads = EVERYTHING
) -> Merged:
    """daemon.json without our recorded settings, or None if we created the file.

    An original text that dockerd cannot read is replaced by an equivalent one.
    """
    if text is None:
        return Merged(None, False)
    mark, body = _split(text)
    merged = unmerge_settings(body, record, file, fmt=JSON_FORMAT)
    if merged.text is not None and not merged.text.strip() and not reads.blank:
        empty = found.REWRITTEN(Severity.INFO, file=file, has="would be empty", how="as {}")
        merged = replace(merged, text=BLANK, notes=(*merged.notes, empty))
    return _marked(merged, text, mark, reads, file)


def _marked(merged: Merged, text: str | None, mark: str, reads: Reads, file: str) -> Merged:
    """The result for the whole file `text`, which had `mark` before the merged part."""
    if merged.blocked:
        return replace(merged, text=text)
    if merged.text is None:
        return merged
    bom = mark if reads.mark else ""
    dropped = found.REWRITTEN(file=file, has="starts with a byte order mark", how="without it")
    notes = () if mark == bom else (dropped,)
    new = bom + merged.text
    return replace(merged, text=new, changed=new != text, notes=(*merged.notes, *notes))


def parse_daemon_json(text: str | None) -> Data:
    """The settings of a daemon.json. Raises NotUnderstood."""
    return JSON_FORMAT.parse(_split(text or "")[1])


def _split(text: str) -> tuple[str, str]:
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def _wanted(data: Data, body: str, desired: DesiredRuntime, record: EditRecord) -> WantedTables:
    """The settings that we require, given those in the file."""
    notes = _shape(data, body, desired)
    if any(note.blocks for note in notes):
        return WantedTables({}, tuple(notes))
    wanted: dict[Path, Any] = {}
    others = desired.layers.without(desired.file)
    layers = Layers((*others.files, (desired.file, data)))
    place = (*RUNTIMES, desired.name)
    theirs = others if is_our_value(data, place, record) else layers
    there = theirs.entry(place)
    if there is None:
        wanted[place] = {"path": desired.binary}
    else:
        notes.append(_compare(there, theirs.file_of(place), desired))
    if desired.default and (
        lookup_path(layers.table, DEFAULT) != desired.name or is_our_value(data, DEFAULT, record)
    ):
        wanted[DEFAULT] = desired.name
    if desired.cdi and (not has_path(data, CDI) or is_our_value(data, CDI, record)):
        wanted[CDI] = True
    return WantedTables(wanted, tuple(notes))


def _shape(data: Data, body: str, desired: DesiredRuntime) -> list[Finding]:
    """Blockers for a file that cannot hold our settings; a warning for duplicate keys.

    dockerd treats null as a missing key, and rejects a runtime without a path.
    """
    notes = []
    twice = duplicate_keys(body)
    if twice:
        touched = {"runtimes", desired.name, "features", "cdi", DEFAULT[0]} & set(twice)
        severity = Severity.BLOCKER if touched else None
        notes.append(found.DUPLICATE_KEYS(severity, file=desired.file, keys=", ".join(twice)))
    kinds = {
        ("runtimes",): dict,
        ("features",): dict,
        ("runtimes", desired.name): dict,
        DEFAULT: str,
    }
    for path, kind in kinds.items():
        value = lookup_path(data, path)
        unset = not has_path(data, path) or (value is None and len(path) == 1)
        if not unset and not isinstance(value, kind):
            reason = f"{'.'.join(path)} should be {'an object' if kind is dict else 'a string'}"
            notes.append(found.CONFIG_INVALID(file=desired.file, reason=reason))
    return notes


def _compare(entry: Data, file: str, desired: DesiredRuntime) -> Finding:
    """The finding about an existing runtime that is not ours: adopted, or kept as it is.

    nvidia-ctk writes an empty `args`, a key that dockerd ignores; nvidia-docker2 an empty
    `runtimeArgs`. Both are equivalent to an entry with only `path`.
    """
    differing = [f"{key} = {value}" for key, value in entry.items() if key != "path" and value]
    path = entry.get("path")
    if path not in (desired.binary, f"/usr/bin/{desired.binary}"):
        differing.insert(0, f"path = {path}" if path else "path is not set")
    if differing:
        return found.RUNTIME_KEPT(file=file, name=desired.name, difference=", ".join(differing))
    return found.RUNTIME_ADOPTED(file=file, name=desired.name)


def read_docker_layers(text: str | None, path: str, unit: str, exec_start: str) -> Layers:
    """The settings of dockerd's command line and of its daemon.json. Raises NotUnderstood."""
    added = (value.partition("=") for value in flag_values(exec_start, "--add-runtime"))
    flags: Data = {"runtimes": {name: {"path": program} for name, _, program in added}}
    flags = {key: value for key, value in flags.items() if value}
    for value in flag_values(exec_start, "--default-runtime"):
        flags[DEFAULT[0]] = value
    there = parse_daemon_json(text)
    return Layers(tuple(layer for layer in ((unit, flags), (path, there)) if layer[1]))


def flag_values(exec_start: str, flag: str) -> list[str]:
    """The values of a long flag on the unit's command line, in order."""
    values = []
    words = _words(exec_start)
    for word, after in zip(words, (*words[1:], ""), strict=False):
        name, equals, value = word.partition("=")
        if name == flag:
            values.append(value if equals else after)
    return values


def flag_conflicts(text: str | None, exec_start: str) -> list[str]:
    """Flags in the unit whose keys are also in daemon.json; dockerd does not start with them.

    `runtimes` is exempt (dockerd merges both). The text must parse.
    """
    there, keys = parse_daemon_json(text), dockerd_options().exclusive_flags
    used: dict[str, str] = {}  # key of daemon.json -> the flag that sets it
    for word in _words(exec_start)[1:]:
        flag = word.split("=", 1)[0]
        for known in (flag, flag if flag.startswith("--") else flag[:2]):
            for key in keys.get(known, ()):
                used[key] = known
    return sorted(f"{flag} ({key})" for key, flag in used.items() if key in there)


@lru_cache(maxsize=256)  # hosts have the same units
def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError:  # systemd's quoting differs from a shell's
        return tuple(command.split())
