"""Small changes of a configuration text, each verified by parsing the result.

A format proposes candidate splices; the first one is used whose result parses to exactly the old
data with exactly this one setting changed. So comments, order and spacing stay, and a text that
does not parse is never written.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

from gpufleet.formats.model import Edit, EditRecord, Path

Data = dict[str, Any]
MAX_DEPTH = 100  # levels; far above handwritten files, below Python's recursion limit
NULL = "null"  # JSON's value of a missing table


class NotUnderstood(ValueError):
    """The text does not parse; the message says where and why."""


class Refused(ValueError):
    """No splice makes exactly the requested change."""


class Splice(NamedTuple):
    """Replace `before` at offset `start` by `after`."""

    start: int
    before: str
    after: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.after + text[self.start + len(self.before) :]


@dataclass(frozen=True, slots=True)
class Format:
    """A configuration language: its parser, and the candidate places of a setting."""

    name: str  # TOML, JSON
    parse: Callable[[str], Data]  # raises NotUnderstood
    put: Callable[[str, Data, Path, Any], Iterable[Splice]]
    remove: Callable[[str, Path], Iterable[Splice]]


def nests_deeper(data: Any, levels: int) -> bool:
    """True if tables and lists are nested deeper than `levels`."""
    layer = [data]
    while levels >= 0 and layer:
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        levels -= 1
    return bool(layer)


def lookup_path(data: Any, path: Path, default: Any = None) -> Any:
    """The value at `path`, or `default` if a step is missing or not a table."""
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return default
        data = data[key]
    return data


def has_path(data: Any, path: Path) -> bool:
    marker = object()
    return lookup_path(data, path, marker) is not marker


def same_value(one: Any, other: Any) -> bool:
    """Equal in value and in type: true is not 1, and 1 is not 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_value(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_value, one, other))
    return type(one) is type(other) and bool(one == other)


def _with(data: Data, path: Path, value: Any) -> list[Data]:
    """Data with the value at `path`; [] if one of its parents is not a table."""
    changed = copy.deepcopy(data)
    table: Any = changed
    for key in path[:-1]:
        if table.get(key) is None:  # missing, or JSON's null
            table[key] = {}
        table = table[key]
        if not isinstance(table, dict):
            return []
    table[path[-1]] = copy.deepcopy(value)
    return [changed]


def _without(data: Data, path: Path, parents: int) -> list[Data]:
    """Data without `path` and its empty parents; then variants that keep more of the parents."""
    changed = copy.deepcopy(data)
    lookup_path(changed, path[:-1]).pop(path[-1])
    states = [changed]
    for depth in range(len(path) - 1, parents, -1):
        if lookup_path(changed, path[:depth]) != {}:
            break
        changed = copy.deepcopy(changed)
        lookup_path(changed, path[: depth - 1]).pop(path[depth - 1])
        states.insert(0, changed)
    return states


def _first(
    text: str, splices: Iterable[Splice], wanted: Sequence[Data], fmt: Format
) -> Splice | None:
    """The first splice with the first state of `wanted` that any splice achieves."""
    best: Splice | None = None
    rank = len(wanted)
    for splice in splices:
        try:
            data = fmt.parse(splice.apply(text))
        except NotUnderstood:
            continue
        place = next((i for i, state in enumerate(wanted) if same_value(data, state)), rank)
        if place < rank:
            best, rank = splice, place
        if rank == 0:
            break
    return best


def put_setting(text: str, path: Path, value: Any, fmt: Format) -> tuple[str, Edit]:
    """The text with `path` set to `value`, and the edit that did it. Raises Refused."""
    data = fmt.parse(text)
    wanted = _with(data, path, value)
    splice = _first(text, fmt.put(text, data, path, value), wanted, fmt) if wanted else None
    if not splice:
        raise Refused(f"{'.'.join(path)} cannot be set without changing other settings")
    parents = sum(has_path(data, path[:depth]) for depth in range(1, len(path)))
    existed, old = has_path(data, path), lookup_path(data, path)
    edit = Edit(path, value, splice.before, splice.after, existed, old, parents)
    return splice.apply(text), edit


def undo_edit(text: str, edit: Edit, fmt: Format) -> str | None:
    """The text without the edit, or None if the setting was changed since."""
    data = fmt.parse(text)
    if not same_value(lookup_path(data, edit.path), edit.value):
        return None
    if edit.existed:
        wanted = _with(data, edit.path, edit.old)
        others: Iterable[Splice] = fmt.put(text, data, edit.path, edit.old)
    else:
        wanted = _without(data, edit.path, edit.parents)
        others = fmt.remove(text, edit.path)
        table = edit.path[:-1]
        if edit.before == NULL and len(lookup_path(data, table)) == 1:
            wanted = _with(data, table, None)
            others = fmt.put(text, data, table, None)
    exact = (Splice(at, edit.after, edit.before) for at in _occurrences(text, edit.after))
    splice = _first(text, chain(exact, others), wanted, fmt)
    return splice.apply(text) if splice else None


def _occurrences(text: str, part: str) -> Iterator[int]:
    at = text.rfind(part) if part else -1
    while at >= 0:
        yield at
        at = text.rfind(part, 0, at + len(part) - 1)


@dataclass(frozen=True, slots=True)
class Settled:
    """A text with every wanted setting, and our changes."""

    text: str
    edits: tuple[Edit, ...]
    left: tuple[Path, ...]  # our settings that were changed by others since


def settle_edits(text: str, wanted: dict[Path, Any], record: EditRecord, fmt: Format) -> Settled:
    """Revert our settings that are no longer wanted, then set those that are missing."""

    def stays(edit: Edit) -> bool:
        return edit.path in wanted and same_value(wanted[edit.path], edit.value)

    settled = retract_edits(text, record, fmt, stays)
    text, edits = settled.text, list(settled.edits)
    for path, value in wanted.items():
        if not same_value(lookup_path(fmt.parse(text), path), value):
            text, edit = put_setting(text, path, value, fmt)
            edits.append(edit)
    return replace(settled, text=text, edits=tuple(edits))


def retract_edits(
    text: str, record: EditRecord, fmt: Format, stays: Callable[[Edit], bool]
) -> Settled:
    """Revert our unchanged settings, except those that stay."""
    kept: list[Edit] = []
    left: list[Path] = []
    for edit in reversed(record.edits):  # backwards: a later edit may be inside an earlier one
        if stays(edit):
            if same_value(lookup_path(fmt.parse(text), edit.path), edit.value):
                kept.insert(0, edit)
            continue
        if not has_path(fmt.parse(text), edit.path):
            continue  # already removed
        restored = undo_edit(text, edit, fmt)
        if restored is None:
            left.append(edit.path)
        else:
            text = restored
    return Settled(text, tuple(kept), tuple(left))
