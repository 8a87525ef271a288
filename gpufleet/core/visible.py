"""Text of others as it is shown: a value is one line, and each of several lines has a mark.

Whoever writes a value that gpufleet repeats could otherwise write lines that look like gpufleet's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

BAR = "  | "  # before each line of a text that another wrote


class Lines(str):
    """A text of another of which the line breaks are to be kept, as the last lines of a log."""


def one_line(text: str) -> str:
    r"""`text` with everything that does not print as itself escaped, as \n, \x1b or \u2028."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    return " " if letter == "\t" else letter.encode("unicode_escape").decode("ascii")


def barred(lines: Iterable[str]) -> list[str]:
    """Lines of another, each as one visible line behind a bar."""
    return [f"{BAR}{one_line(line)}".rstrip() for line in lines]


def each_line(text: str) -> str:
    """A text that gpufleet put together of lines: each is one visible line."""
    return "\n".join(map(one_line, text.split("\n")))


def visible(value: object) -> Any:
    """A value as a sentence can hold it; a number stays one."""
    if isinstance(value, int | float):
        return value
    if isinstance(value, Lines) and "\n" in value.strip():
        return "\n" + "\n".join(barred(value.strip().split("\n")))
    return one_line(str(value).rstrip("\r\n") if isinstance(value, Lines) else str(value))
