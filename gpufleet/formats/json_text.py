"""JSON as text: places to insert or remove a member so that everything else is unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpufleet.formats.edits import (
    MAX_DEPTH,
    NULL,
    Data,
    Format,
    NotUnderstood,
    Splice,
    has_path,
    nests_deeper,
)
from gpufleet.formats.model import Path

NEW_FILE_INDENT = "    "
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class JsonMember:
    """One member of an object, as offsets into the text."""

    key: str
    start: int  # of the key's opening quote
    key_end: int
    value: int  # start of the value
    end: int  # end of the value


@dataclass(frozen=True, slots=True)
class Object:
    """One object: offsets of its braces, and its members."""

    start: int
    end: int  # of the closing brace
    members: tuple[JsonMember, ...]


Way = list[tuple[Object, JsonMember]]  # along a path: each object, and its member on the path


def parse_json(text: str) -> Data:
    """The file's object. Numbers stay strings, so that comparisons lose no digits.

    A blank file is an empty object, as for dockerd.
    """
    if not text.strip():
        return {}
    try:
        data = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise NotUnderstood(str(error)) from error
    if nests_deeper(data, MAX_DEPTH):
        raise NotUnderstood(f"it is nested more than {MAX_DEPTH} levels deep")
    if not isinstance(data, dict):
        raise NotUnderstood("the file contains a list or a single value instead of an object")
    return data


class Number(str):
    """A number as in the text; `same` compares types, so it never equals a string."""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_no_constant)


def duplicate_keys(text: str) -> list[str]:
    """Duplicate keys of one object, each once, in order; the text must parse."""
    found: dict[str, None] = {}

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                found[key] = None
            seen.add(key)
        return dict(pairs)

    if text.strip():
        json.loads(text, object_pairs_hook=collect, parse_int=Number, parse_float=Number)
    return list(found)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _object(text: str, at: int) -> Object:
    start = at
    members = []
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, key_end = _DECODER.raw_decode(text, at)
        value = _skip(text, _skip(text, key_end) + 1)
        _, end = _DECODER.raw_decode(text, value)
        members.append(JsonMember(key, at, key_end, value, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return Object(start, at, tuple(members))


def _descend(text: str, path: Path) -> Way:
    """The existing objects along `path`, each with the member that leads to the next."""
    way: Way = []
    at = _skip(text, 0)
    for key in path:
        if text[at : at + 1] != "{":
            break
        here = _object(text, at)
        member = next((m for m in here.members if m.key == key), None)
        if member is None:
            break
        way.append((here, member))
        at = member.value
    return way


def put_json(text: str, data: Data, path: Path, value: Any) -> Iterator[Splice]:
    """Splices that set the value at `path`: replace it, or add the missing members."""
    if not text.strip():
        yield Splice(0, text, json.dumps(_nest(path, value), indent=4, ensure_ascii=False) + "\n")
        return
    way = _descend(text, path)
    if has_path(data, path):
        _, member = way[-1]
        yield Splice(member.value, text[member.value : member.end], _dump(value, text, way))
        return
    if way and text[way[-1][1].value : way[-1][1].end] == NULL:
        _, member = way[-1]
        yield Splice(member.value, NULL, _dump(_nest(path[len(way) :], value), text, way))
        return
    start = way[-1][1].value if way else _skip(text, 0)
    container = _object(text, start)
    key, rest = path[len(way)], path[len(way) + 1 :]
    yield _added(text, container, way, key, _nest(rest, value))


def _nest(path: Path, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _added(text: str, container: Object, way: Way, key: str, value: Any) -> Splice:
    members = container.members
    if not members:
        empty = text[container.start : container.end + 1]
        return Splice(container.start, empty, _dump({key: value}, text, way))
    first, last = members[0], members[-1]
    before_key = text[container.start + 1 : first.start]
    if len(members) > 1:
        after_comma = text.index(",", members[-2].end) + 1
        before_key = text[after_comma : last.start]
    colon = text[last.key_end : last.value]
    if not before_key and len(members) == 1 and colon.endswith(" "):
        before_key = " "
    inside = [*way, (container, last)]
    rendered = json.dumps(key, ensure_ascii=False) + colon + _dump(value, text, inside)
    return Splice(last.end, "", "," + before_key + rendered)


def _dump(value: Any, text: str, way: Way) -> str:
    """The value as JSON in the layout of its context; `way` ends in the enclosing object."""
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    lead = _lead(text, way[-1][0]) if way else ""
    if way and "\n" not in lead:
        colon = text[way[-1][1].key_end : way[-1][1].value]
        comma = ", " if lead or " " in colon else ","
        return json.dumps(value, ensure_ascii=False, separators=(comma, colon))
    newline = "\r\n" if "\r\n" in text else "\n"
    root = _object(text, _skip(text, 0))
    indent = _lead(text, root).rsplit("\n", 1)[-1] or NEW_FILE_INDENT
    margin = lead.rsplit("\n", 1)[-1]
    lines = json.dumps(value, ensure_ascii=False, indent=indent).split("\n")
    return (newline + margin).join(lines)


def _lead(text: str, around: Object) -> str:
    return text[around.start + 1 : around.members[0].start] if around.members else ""


def remove_json(text: str, path: Path) -> Iterator[Splice]:
    """Splices that remove the setting: alone, or with the parents that become empty."""
    way = _descend(text, path)
    if len(way) < len(path):
        return
    for around, member in reversed(way):
        index = around.members.index(member)
        if index:
            start, end = around.members[index - 1].end, member.end
        elif len(around.members) > 1:
            start, end = member.start, around.members[1].start
        else:
            start, end = around.start + 1, around.end
        yield Splice(start, text[start:end], "")
        if len(around.members) > 1:
            return


JSON_FORMAT = Format("JSON", parse_json, put_json, remove_json)
