"""Hostile variants of good inputs: text with damage, trees of JSON with leaves of another kind."""

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


def damaged(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    """`data` with one to four places cut out, doubled, changed, or filled from elsewhere."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = chance.choice(_DAMAGES)(data, others, chance)
    return data


def _cut_off(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _without_span(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    begin, end = _span(data, chance)
    return data[:begin] + data[end:]


def _doubled_span(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    begin, end = _span(data, chance)
    return data[:end] + data[begin:end] + data[end:]


def _other_byte(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _token(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    begin, end = (
        _span(data, chance) if chance.random() < 0.5 else [chance.randrange(len(data) + 1)] * 2
    )
    return data[:begin] + chance.choice(TOKENS) + data[end:]


def _span_of_another(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    other = chance.choice(others)
    begin, end = _span(other, chance)
    at = chance.randrange(len(data) + 1)
    return data[:at] + other[begin:end] + data[at:]


def _lines_in_another_order(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    lines = data.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _without_line(data: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    lines = data.split(b"\n")
    del lines[chance.randrange(len(lines))]
    return b"\n".join(lines)


Damage = Callable[[bytes, Sequence[bytes], Random], bytes]
_DAMAGES: Sequence[Damage] = (
    _cut_off, _without_span, _doubled_span, _other_byte, _token, _span_of_another,
    _lines_in_another_order, _without_line,
)  # fmt: skip


def _span(data: bytes, chance: Random) -> tuple[int, int]:
    begin = chance.randrange(len(data) + 1)
    return begin, min(len(data), begin + chance.choice((1, 4, 16, 200)))


def odd_tree(tree: Any, chance: Random) -> Any:
    """A copy of a tree of JSON in which one to three values are gone or of another kind."""
    tree = copy.deepcopy(tree)
    for _ in range(chance.choice((1, 1, 2, 3))):
        holder, key = _place(tree, chance)
        if holder is None:
            return chance.choice(LEAVES)
        fate = chance.random()
        if fate < 0.25:
            del holder[key]
        elif fate < 0.35 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        else:
            holder[key] = copy.deepcopy(chance.choice(LEAVES))
    return tree


def _place(tree: Any, chance: Random) -> tuple[Any, Any]:
    """A container of the tree and a key in it; (None, None) where there is none."""
    found: tuple[Any, Any] = (None, None)
    while isinstance(tree, dict | list) and tree:
        key = chance.choice(list(tree)) if isinstance(tree, dict) else chance.randrange(len(tree))
        found = (tree, key)
        if chance.random() < 0.15:
            break
        tree = tree[key]
    return found
