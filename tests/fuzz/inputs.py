"""Hostile variants of valid inputs: damaged text, JSON trees with values of another type."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

TOKENS: Sequence[bytes] = (
    *(
        b"",
        b"\0",
        b"\n",
        b"\r\n",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xc3\xbc",
        b" ",
        b"\t",
        b"\\",
        b"%",
    ),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b'"',
        b"'",
        b":",
        b",",
        b"=",
        b"#",
        b"- ",
        b"&a [*a]",
        b"<<: *a",
        b"!!x",
    ),
    *(
        b"0",
        b"-1",
        b"1e999",
        b"NaN",
        b"9" * 40,
        b"1" * 5000,
        b"null",
        b"true",
        b"[" * 3000,
        b'{"":' * 3000,
    ),
    *(
        b"\n@@os\nID=x\n",
        b"\n@@end\n",
        b"\n---\n",
        b"GF310",
        b"[/red]",
        b"\x1b[2J",
        b"$(id)",
        b"a" * 3000,
    ),
)
LEAVES: Sequence[Any] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        10**30,
        0.5,
        "",
        " ",
        "\n",
        "x",
        "ü",
        "\0",
        "a" * 3000,
        "1.2.3",
        "v1",
    ),
    *([], {}, [None], [[]], {"": None}, {"a": {}}, [{"name": None}], ["x", 1], {"metadata": None}),
)


def damaged(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """`data` with one to four spans removed, duplicated, changed, or replaced from other inputs."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(_DAMAGES)(data, others, rng)
    return data


def _truncated(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _without_span(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    begin, end = _span(data, rng)
    return data[:begin] + data[end:]


def _duplicated_span(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    begin, end = _span(data, rng)
    return data[:end] + data[begin:end] + data[end:]


def _changed_byte(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _token(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    begin, end = _span(data, rng) if rng.random() < 0.5 else [rng.randrange(len(data) + 1)] * 2
    return data[:begin] + rng.choice(TOKENS) + data[end:]


def _span_of_another(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    other = rng.choice(others)
    begin, end = _span(other, rng)
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[begin:end] + data[at:]


def _swapped_lines(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _without_line(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    lines = data.split(b"\n")
    del lines[rng.randrange(len(lines))]
    return b"\n".join(lines)


Damage = Callable[[bytes, Sequence[bytes], Random], bytes]
_DAMAGES: Sequence[Damage] = (
    _truncated, _without_span, _duplicated_span, _changed_byte, _token, _span_of_another,
    _swapped_lines, _without_line,
)  # fmt: skip


def _span(data: bytes, rng: Random) -> tuple[int, int]:
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + rng.choice((1, 4, 16, 200)))


def odd_tree(tree: Any, rng: Random) -> Any:
    """A copy of a JSON tree with one to three values removed or of another type."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 2, 3))):
        holder, key = _place(tree, rng)
        if holder is None:
            return rng.choice(LEAVES)
        choice = rng.random()
        if choice < 0.25:
            del holder[key]
        elif choice < 0.35 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        else:
            holder[key] = copy.deepcopy(rng.choice(LEAVES))
    return tree


def _place(tree: Any, rng: Random) -> tuple[Any, Any]:
    """A random container of the tree and a key in it; (None, None) without one."""
    found: tuple[Any, Any] = (None, None)
    while isinstance(tree, dict | list) and tree:
        key = rng.choice(list(tree)) if isinstance(tree, dict) else rng.randrange(len(tree))
        found = (tree, key)
        if rng.random() < 0.15:
            break
        tree = tree[key]
    return found
