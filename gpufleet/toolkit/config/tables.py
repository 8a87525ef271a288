"""Shared by docker, containerd and CRI-O: merge settings into a file, and remove them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from gpufleet.core.findings import Finding
from gpufleet.formats.edits import (
    Data,
    Format,
    NotUnderstood,
    Refused,
    lookup_path,
    retract_edits,
    same_value,
    settle_edits,
)
from gpufleet.formats.model import EditRecord, Merged, Path
from gpufleet.formats.toml_text import TOML, without_comment
from gpufleet.toolkit.config.desired import DesiredRuntime
from gpufleet.toolkit.findings import config as found


class WantedTables(NamedTuple):
    """The settings that we require, findings, and the runtime that ours inherits from."""

    settings: dict[Path, Any]
    notes: tuple[Finding, ...]
    inherits: str = ""


def is_our_value(data: Data, path: Path, record: EditRecord) -> bool:
    """True if the setting still has our value."""
    return path in record.values and same_value(lookup_path(data, path), record.values[path])


def merge_settings(
    text: str | None,
    skeleton: str,
    desired: DesiredRuntime,
    record: EditRecord,
    wanted_of: Callable[[Data], WantedTables],
    fmt: Format = TOML,
) -> Merged:
    """The text with the settings that `wanted_of` returns for its data; unchanged if blocked.

    `skeleton`: the initial text of a new file.
    """
    start = skeleton if text is None else text
    try:
        wanted, notes, inherits = wanted_of(fmt.parse(start))
        if any(note.blocks for note in notes):
            return Merged(text, False, notes, record)
        settled = settle_edits(start, wanted, record, fmt)
    except NotUnderstood as error:
        reason = f"it is not valid {fmt.name}: {error}"
        note = found.CONFIG_INVALID(file=desired.file, reason=reason)
        return Merged(text, False, (note,), record)
    except Refused as error:
        note = found.EDIT_REFUSED(file=desired.file, reason=error)
        return Merged(text, False, (note,), record)
    if text is None and not settled.edits:
        return Merged(None, False, notes)
    created = record.created or text is None
    base = record.skeleton or (skeleton if text is None else "")
    done = EditRecord(created, base, settled.edits, inherits)
    if created and settled.text == base and not done.edits:
        return Merged(None, True, notes)
    return Merged(settled.text, settled.text != text, notes, done)


def unmerge_settings(
    text: str | None,
    record: EditRecord,
    file: str,
    needed_by: Callable[[Data], dict[Path, str]] | None = None,
    fmt: Format = TOML,
) -> Merged:
    """The text without our settings, or None if we created it and nothing was added.

    `needed_by` returns our settings that the rest depends on, each with its dependent: they stay,
    and are the user's from then on.
    """
    if text is None:
        return Merged(None, False)
    try:
        settled = retract_edits(text, record, fmt, lambda edit: False)
        needed = needed_by(fmt.parse(settled.text)) if needed_by else {}
        if needed:
            settled = retract_edits(text, record, fmt, lambda edit: edit.path in needed)
            settled = replace(settled, text=without_comment(settled.text))
    except NotUnderstood as error:
        note = found.CONFIG_INVALID(file=file, reason=f"it is not valid {fmt.name}: {error}")
        return Merged(text, False, (note,), record)
    notes = (
        *(found.LEFT_CHANGED(setting=".".join(p), file=file) for p in settled.left),
        *(
            found.NEEDED_BY_OTHERS(setting=".".join(edit.path), file=file, user=needed[edit.path])
            for edit in settled.edits
        ),
    )
    if record.created and same_value(fmt.parse(settled.text), fmt.parse(record.skeleton)):
        return Merged(None, True, notes)
    return Merged(settled.text, settled.text != text, notes)


def parse_tables(text: str | None) -> Data:
    """The tables of a text; none if it is missing or does not parse."""
    if text is None:
        return {}
    try:
        return TOML.parse(text)
    except NotUnderstood:
        return {}


def without_zeros(table: Data) -> Data:
    """The table without zero and empty values, which are Go's defaults."""
    return {key: value for key, value in table.items() if value not in ("", 0, False, [], {})}


def adopted_runtime(
    theirs: Data, ours: Data, equivalent: Callable[[Path, Any, Any], bool], file: str, name: str
) -> Finding:
    """The finding about a runtime that is not ours, by every setting that ours would have.

    `equivalent`: True if their value has the effect of ours. Settings that only they have are the
    user's.
    """
    differing = [
        f"{'.'.join(path)} is {_shown(value)}, not {_shown(own)}"
        for path, own in _settings(ours)
        if not same_value(value := lookup_path(theirs, path), own)
        and not equivalent(path, value, own)
    ]
    if differing:
        return found.RUNTIME_KEPT(file=file, name=name, difference="; ".join(differing))
    return found.RUNTIME_ADOPTED(file=file, name=name)


def _settings(table: Data, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _settings(value, (*path, key))
        else:
            yield (*path, key), value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "not set" if value in (None, "") else str(value)


def base_runtime(
    runtimes: Data, preferred: tuple[str, ...], own: str, fits: Callable[[Data], bool]
) -> str:
    """Name of the runtime to inherit from: a preferred one, else runc, else crun; "" for none."""
    for name in (*preferred, "runc", "crun"):
        table = runtimes.get(name)
        if name != own and isinstance(table, dict) and fits(table):
            return name
    return ""
