"""Changes entries of YAML files, and leaves every other byte: comments, order, layout. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import yaml

from gpufleet.catalog.models import DataEdit

_PLAIN = re.compile(r"[A-Za-z0-9][^,\[\]{}#\"']*")  # texts that need no quotes in a flow
ROOT = "gpufleet"  # folder of the data files in a checkout


class NoPlace(LookupError):
    """The data file does not have the place of an edit."""


def apply_edits(text: str, edits: Iterable[DataEdit]) -> str:
    """The text with all edits. Raises NoPlace."""
    for edit in edits:
        text = _applied(text, edit)
    return text


def path_of_file(name: str) -> str:
    """The path of a data file ROOM/NAME in a checkout."""
    room, _, stem = name.partition("/")
    return f"{ROOT}/{room}/data/{stem}.yaml"


def unified_patch(changed: Mapping[str, tuple[str, str]]) -> str:
    """A patch for `git apply`. `changed`: path -> text before and after."""
    parts = []
    for path, (before, after) in sorted(changed.items()):
        lines = difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"a/{path}",
            f"b/{path}",
        )
        parts.append("".join(lines))
    return "".join(parts)


def _applied(text: str, edit: DataEdit) -> str:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    *parents, last = edit.path
    if edit.action == "set":
        return _replaced(text, _find(root, edit.path), str(edit.value))
    if edit.action == "keep":
        old, other = _find(root, edit.path).value, (*parents, str(edit.value))
        return _applied(text, DataEdit(edit.file, other, old, "add")) if old else text
    if edit.action == "append":
        return _appended(text, _find(root, edit.path), str(edit.value))
    try:
        node = _find(root, edit.path)
    except NoPlace:  # a list that the entry does not have yet
        return _with_key(text, _find(root, tuple(parents)), str(last), f"[{_flow(edit.value)}]")
    if isinstance(node, yaml.MappingNode):
        assert isinstance(edit.value, Mapping)
        ((key, value),) = edit.value.items()
        return _with_key(text, node, _flow(key), str(value))
    return _with_item(text, node, edit.value)


def _find(node: Any, path: tuple[str | tuple[str, str], ...]) -> Any:
    for step in path:
        inner = None
        if isinstance(step, str) and isinstance(node, yaml.MappingNode):
            inner = _value(node, step)
        elif not isinstance(step, str) and isinstance(node, yaml.SequenceNode):
            key, wanted = step
            inner = next((each for each in node.value if _scalar(each, key) == wanted), None)
        if inner is None:
            raise NoPlace(f"no {step} in the file")
        node = inner
    return node


def _value(node: yaml.MappingNode, key: str) -> Any:
    return next((value for name, value in node.value if name.value == key), None)


def _scalar(node: Any, key: str) -> str | None:
    found = _value(node, key) if isinstance(node, yaml.MappingNode) else None
    return found.value if isinstance(found, yaml.ScalarNode) else None


def _replaced(text: str, node: Any, value: str) -> str:
    return text[: node.start_mark.index] + _flow(value) + text[node.end_mark.index :]


def _appended(text: str, node: Any, value: str) -> str:
    """Add to a text, or a comment to its line."""
    end = _end(text, node)
    if value.lstrip().startswith("#"):
        line = text.index("\n", end)
        return text[:line] + value + text[line:]
    at = end - 1 if node.style in ("'", '"') else end
    return text[:at] + value + text[at:]


def _with_key(text: str, node: Any, key: str, value: str) -> str:
    """Add a key at the end of a mapping."""
    end = _end(text, node)
    if node.flow_style:
        return text[: end - 1] + f", {key}: {value}" + text[end - 1 :]
    return _with_line(text, end, f"{' ' * node.value[-1][0].start_mark.column}{key}: {value}")


def _with_item(text: str, node: Any, value: object) -> str:
    """Add an entry at the end of a list."""
    if node.flow_style:
        end = _end(text, node)
        return text[: end - 1] + f"{', ' if node.value else ''}{_flow(value)}" + text[end - 1 :]
    last = node.value[-1]
    indent = " " * node.start_mark.column
    return _with_line(text, _end(text, last), f"{indent}- {_flow(value)}")


def _with_line(text: str, end: int, line: str) -> str:
    """Add a line after the line of this place."""
    at = text.find("\n", end)
    at = len(text) if at < 0 else at
    return f"{text[:at]}\n{line}{text[at:]}"


def _end(text: str, node: Any) -> int:
    """The place behind a node's last character. PyYAML's mark is behind the blanks, too."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style:
        return len(text[: node.end_mark.index].rstrip())
    last = node.value[-1]
    return _end(text, last[1] if isinstance(last, tuple) else last)


def _flow(value: object) -> str:
    """A value on one line, quoted if YAML would read it as anything but this text."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    text = str(value)
    plain = _PLAIN.fullmatch(text) and ": " not in text and not text.endswith((" ", ":"))
    if isinstance(value, int) or (plain and _is_kept(text)):
        return text
    return f'"{text}"'


def _is_kept(text: str) -> bool:
    """True for text, and for a date, which the catalog writes without quotes."""
    return isinstance(yaml.safe_load(text), str | date)
