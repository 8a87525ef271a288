"""docker's /etc/docker/daemon.json: the nvidia runtime, the default runtime, and CDI."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from gpufleet.core.findings import Finding, Severity
from gpufleet.toolkit.config.edits import (
    Data,
    NotUnderstood,
    Refused,
    has,
    lookup,
    retract,
    same,
    settle,
)
from gpufleet.toolkit.config.json_text import JSON, duplicates
from gpufleet.toolkit.config.model import DesiredRuntime, Merged, Path, Reads, Record
from gpufleet.toolkit.findings import config as found

DEFAULT: Path = ("default-runtime",)
CDI: Path = ("features", "cdi")
EVERYTHING = Reads()
BLANK = "{}\n"  # the meaning of an empty file for dockerd
_BOM = "\ufeff"  # newer versions of dockerd accept it; Python's parser does not


def merge(text: str | None, desired: DesiredRuntime, record: Record | None = None) -> Merged:
    """daemon.json with the `desired` settings; everything else keeps its place and its bytes.

    `record`: the changes of an earlier merge. A text that cannot be merged is returned unchanged,
    with a blocker among the notes.
    """
    record = record or Record()
    mark, body = _split(text or "")
    bom = mark if desired.reads.mark else ""
    try:
        data = JSON.parse(body)
        wanted, notes = _wanted(data, body, desired, record)
        if any(note.blocks for note in notes):
            return Merged(text, False, notes, record)
        settled = settle(body, wanted, record, JSON)
    except NotUnderstood as error:
        note = found.CONFIG_INVALID(
            file=desired.file, language="JSON", reason=error, runtime="docker"
        )
        return Merged(text, False, (note,), record)
    except Refused as error:
        note = found.EDIT_REFUSED(file=desired.file, reason=error)
        return Merged(text, False, (note,), record)
    created = record.created or (text is None and bool(settled.record.edits))
    new = bom + settled.text if settled.text or text is not None else None
    notes = (*notes, *_dropped(mark, bom, desired.file))
    done = Record(created, "", settled.record.edits)
    return Merged(new, new != text, notes, done)


def unmerge(
    text: str | None, record: Record, file: str = "daemon.json", reads: Reads = EVERYTHING
) -> Merged:
    """daemon.json without our recorded settings; None if we created the file.

    An original text that dockerd cannot read is replaced by an equivalent one.
    """
    if text is None:
        return Merged(None, False)
    mark, body = _split(text)
    bom = mark if reads.mark else ""
    try:
        settled = retract(body, record, JSON)
    except NotUnderstood as error:
        note = found.CONFIG_INVALID(file=file, language="JSON", reason=error, runtime="docker")
        return Merged(text, False, (note,), record)
    notes = tuple(found.LEFT_CHANGED(setting=".".join(p), file=file) for p in settled.left)
    if record.created and JSON.parse(settled.text) == {}:
        return Merged(None, True, notes)
    rest = settled.text
    if not rest.strip() and not reads.blank:
        rest, notes = BLANK, (*notes, found.BLANK_REPLACED(file=file))
    notes = (*notes, *_dropped(mark, bom, file))
    return Merged(bom + rest, bom + rest != text, notes)


def _dropped(mark: str, kept: str, file: str) -> tuple[Finding, ...]:
    return () if mark == kept else (found.MARK_DROPPED(file=file),)


def data(text: str | None) -> Data:
    """The settings of a daemon.json. Raises NotUnderstood."""
    return JSON.parse(_split(text or "")[1])


def _split(text: str) -> tuple[str, str]:
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def _wanted(
    data: Data, body: str, desired: DesiredRuntime, record: Record
) -> tuple[dict[Path, Any], tuple[Finding, ...]]:
    """The settings that we require, given those in the file."""
    notes = _shape(data, body, desired)
    if any(note.blocks for note in notes):
        return {}, tuple(notes)
    wanted: dict[Path, Any] = {}
    path = ("runtimes", desired.name)
    if not has(data, path) or _is_ours(data, path, record):
        wanted[path] = {"path": desired.binary}
    else:
        notes.append(_compare(lookup(data, path), desired))
    if desired.default:
        old = lookup(data, DEFAULT)
        if old is None or old != desired.name or _is_ours(data, DEFAULT, record):
            wanted[DEFAULT] = desired.name
        if old not in (None, desired.name):
            notes.append(found.DEFAULT_REPLACED(file=desired.file, old=old, name=desired.name))
    if desired.cdi:
        if not has(data, CDI) or _is_ours(data, CDI, record):
            wanted[CDI] = True
        elif lookup(data, CDI) is not True:
            notes.append(found.CDI_SWITCHED_OFF(file=desired.file, name="nvidia.com/gpu"))
    return wanted, tuple(notes)


def _is_ours(data: Data, path: Path, record: Record) -> bool:
    return path in record.values and same(lookup(data, path), record.values[path])


def _shape(data: Data, body: str, desired: DesiredRuntime) -> list[Finding]:
    """Blockers for a file that cannot hold our settings; a warning for duplicate keys.

    dockerd treats null as a missing key, and rejects a runtime without a path.
    """
    notes = []
    twice = duplicates(body)
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
        value = lookup(data, path)
        unset = not has(data, path) or (value is None and len(path) == 1)
        if not unset and not isinstance(value, kind):
            reason = f"{'.'.join(path)} should be {'an object' if kind is dict else 'a string'}"
            notes.append(
                found.CONFIG_INVALID(
                    file=desired.file, language="for dockerd", reason=reason, runtime="docker"
                )
            )
    return notes


def _compare(entry: Data, desired: DesiredRuntime) -> Finding:
    """The finding about an existing runtime that is not ours: adopted, or kept as it is.

    nvidia-ctk writes an empty `args`, a key that dockerd ignores; nvidia-docker2 an empty
    `runtimeArgs`. Both are equivalent to an entry with only `path`.
    """
    differing = [f"{key} = {value}" for key, value in entry.items() if key != "path" and value]
    path = entry.get("path")
    if path not in (desired.binary, f"/usr/bin/{desired.binary}"):
        differing.insert(0, f"path = {path}")
    if differing:
        return found.RUNTIME_KEPT(
            file=desired.file, name=desired.name, difference=", ".join(differing)
        )
    return found.RUNTIME_ADOPTED(file=desired.file, name=desired.name)


def used_flags(exec_start: str, keys: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """daemon.json keys that the unit's command line sets, with the flag.

    `keys` maps each conflicting flag (`-H`, `--host`) to the keys that it sets.
    """
    used: dict[str, str] = {}
    for word in _words(exec_start)[1:]:
        flag = word.split("=", 1)[0]
        for known in (flag, flag[:2] if not flag.startswith("--") else flag):
            for key in keys.get(known, ()):
                used[key] = known
    return used


def flag_values(exec_start: str, flag: str) -> list[str]:
    """The values of a long flag on the unit's command line, in order."""
    values = []
    words = _words(exec_start)
    for word, after in zip(words, [*words[1:], ""], strict=False):
        name, equals, value = word.partition("=")
        if name == flag:
            values.append(value if equals else after)
    return values


def conflicts(
    text: str | None, exec_start: str, keys: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Flags in the unit whose keys are also in daemon.json; dockerd does not start with them.

    `runtimes` is exempt (dockerd merges both). The text must parse.
    """
    there = data(text)
    used = used_flags(exec_start, keys)
    return tuple(sorted({f"{used[key]} ({key})" for key in used if key in there}))


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # systemd's quoting differs from a shell's
        return command.split()
