"""TOML as text: places to insert or remove a setting so that everything else is unchanged.

New tables go to the end of the file, under their full name: TOML allows that wherever the parents
are, and no other line changes. tomlkit, which keeps comments and order, is used if that is
impossible (inline tables), and to remove a table that another program rewrote.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import tomlkit
import tomlkit.exceptions

from gpufleet.formats.edits import (
    MAX_DEPTH,
    Data,
    Format,
    NotUnderstood,
    Splice,
    has_path,
    nests_deeper,
)
from gpufleet.formats.model import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COMMENT = "# The next tables are gpufleet's: gpufleet changes them, and takes them away again."
_HEADER = re.compile(r"^([ \t]*)\[(?!\[)[^\n]*\][ \t]*(?:#[^\n]*?)?(?=\r?$)", re.MULTILINE)
_VALUE = r"""(?P<value>"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|true|false)"""


@lru_cache(maxsize=64)
def parse_toml(text: str) -> Data:
    """The file's tables, which nobody may change: hosts with the same file share them."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError
        raise NotUnderstood(str(error)) from error
    if nests_deeper(data, MAX_DEPTH):
        raise NotUnderstood(f"it is nested more than {MAX_DEPTH} levels deep")
    return data


def render_table(path: Path, table: dict[str, Any]) -> str:
    """A table with its full name, sub-tables after it, as lines that end in a newline."""
    values = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"[{_dotted(path)}]"] if path and (values or len(values) == len(table)) else []
    lines += [
        f"{_dotted((key,))} = {tomlkit.item(value).as_string()}" for key, value in values.items()
    ]
    text = "".join(f"{line}\n" for line in lines)
    for key, value in table.items():
        if isinstance(value, dict):
            text += render_table((*path, key), value)
    return text


def _dotted(path: Path) -> str:
    return tomlkit.key(list(path) if len(path) > 1 else path[0]).as_string()


def put_toml(text: str, data: Data, path: Path, value: Any) -> Iterator[Splice]:
    """Splices that set the value at `path`, the simplest first."""
    if isinstance(value, dict):
        yield _appended(text, render_table(path, value))
    elif len(path) == 1 and not has_path(data, path):
        newline = "\r\n" if "\r\n" in text else "\n"
        yield Splice(0, "", render_table((), {path[0]: value}).replace("\n", newline))
        return
    elif has_path(data, path):
        yield from _replaced(text, path, value)
    else:
        if has_path(data, path[:-1]):
            yield from _inserted(text, path, value)
        yield _appended(text, render_table(path[:-1], {path[-1]: value}))
    yield from _by_tomlkit(text, path, value)


def _appended(text: str, block: str) -> Splice:
    newline = "\r\n" if "\r\n" in text else "\n"
    lead = "" if not text or text.endswith("\n") else newline
    comment = "" if COMMENT in text else f"{newline if text else ''}{COMMENT}{newline}"
    return Splice(len(text), "", lead + comment + block.replace("\n", newline))


def without_comment(text: str) -> str:
    """The text without our comment: the tables after it are the user's from now on."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if line.strip() != COMMENT)


def _inserted(text: str, path: Path, value: Any) -> Iterator[Splice]:
    line = f"{_dotted((path[-1],))} = {tomlkit.item(value).as_string()}"
    for header in _HEADER.finditer(text):
        if path[-2] not in header.group():
            continue
        at = header.end()
        following = re.compile(r"(?:[ \t]*\r?\n)*([ \t]*)[^\s#\[]").match(text, at)
        nested = header.group(1) + ("  " if header.group(1) else "")
        indent = following.group(1) if following else nested
        newline = "\r\n" if text[at : at + 2] == "\r\n" else "\n"
        yield Splice(at, "", f"{newline}{indent}{line}")


def _replaced(text: str, path: Path, value: Any) -> Iterator[Splice]:
    key = re.escape(path[-1])
    pattern = re.compile(rf"""(?<![\w-])["']?{key}["']?[ \t]*=[ \t]*{_VALUE}""")
    for match in pattern.finditer(text):
        yield Splice(match.start("value"), match["value"], tomlkit.item(value).as_string())


def _by_tomlkit(text: str, path: Path, value: Any) -> Iterator[Splice]:
    try:
        document = tomlkit.parse(text)
        table: Any = document
        for key in path[:-1]:
            table = table.setdefault(key, {})
        table[path[-1]] = value
        changed = document.as_string()
    except _TOMLKIT_ERRORS:
        return
    yield _difference(text, changed)


def remove_toml(text: str, path: Path) -> Iterator[Splice]:
    """Splices that remove the setting: alone, or with the parents that become empty."""
    for depth in range(len(path), 0, -1):
        try:
            document = tomlkit.parse(text)
            table: Any = document
            for key in path[: depth - 1]:
                table = table[key]
            del table[path[depth - 1]]
            changed = document.as_string()
        except _TOMLKIT_ERRORS:
            continue
        yield _difference(text, changed)


# tomlkit also raises plain Python errors if tables are out of order.
_TOMLKIT_ERRORS = (
    tomlkit.exceptions.TOMLKitError, KeyError, TypeError, ValueError, AttributeError, IndexError,
)  # fmt: skip


def _difference(text: str, changed: str) -> Splice:
    """The single splice from `text` to `changed`, in whole lines."""
    old, new = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    start = len("".join(old[:head]))
    before, after = "".join(old[head : len(old) - tail]), "".join(new[head : len(new) - tail])
    return Splice(start, before, after)


TOML = Format("TOML", parse_toml, put_toml, remove_toml)
