"""Makes untrusted text visible in output: a value is one line, quoted lines have a mark.

Otherwise a value could contain lines that look like gpufleet's own output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

BAR = "  | "  # before each line of untrusted text


class Count(int):
    """A number in a sentence: the format `pod uses|pods use` gives `1 pod uses` or `2 pods use`."""

    def __format__(self, form: str) -> str:
        one, bar, several = form.partition("|")
        return f"{int(self)} {one if self == 1 else several}" if bar else format(int(self), form)


class Lines(str):
    """Untrusted text that keeps its line breaks, such as the last lines of a log."""


def one_line(text: str) -> str:
    r"""`text` with unprintable characters escaped, as \n, \x1b or \u2028."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    return " " if letter == "\t" else letter.encode("unicode_escape").decode("ascii")


def bar_lines(lines: Iterable[str]) -> list[str]:
    """Untrusted lines, each as one visible line behind a bar."""
    return [f"{BAR}{one_line(line)}".rstrip() for line in lines]


def each_line(text: str) -> str:
    """A text of several lines, written by gpufleet, with each line made visible."""
    return "\n".join(map(one_line, text.split("\n")))


def printed_value(value: object, form: Callable[[object], str] = repr) -> str:
    """The repr or str of an inventory value. An object's own method may raise."""
    try:
        return form(value)
    except Exception as error:  # noqa: BLE001 - of the user's own class
        return f"<{type(value).__name__} whose {form.__name__} raises {type(error).__name__}>"


def visible_value(value: object) -> Any:
    """A value for a format string. Numbers stay numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Count(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, Lines) and "\n" in value.strip():
        return "\n" + "\n".join(bar_lines(value.strip().split("\n")))
    return one_line(str(value).rstrip("\r\n") if isinstance(value, Lines) else str(value))
