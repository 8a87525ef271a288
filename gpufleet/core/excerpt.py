"""A part of a foreign text, without secrets: they are masked before anything is cut off that is
shown, and a part of one is not left behind."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from gpufleet.core.names import counted
from gpufleet.core.redact import redact, redacted_lines
from gpufleet.core.redact_sentences import redact_sentences

READ = 64 * 1024  # characters that secrets are looked for in: time grows with them
SAID = 800  # characters of an error of a server in a message
LONGEST_LINE = 2000  # characters
LONGEST_READ = 8 * 1024  # characters of a line, likewise
TOO_LONG = "a line that is too long to be shown"
_BETWEEN_WORDS = " \t\r\n,;\"'"
_LETTERS = string.ascii_letters + string.digits + "+/=_.~%-"  # that a secret may consist of
_END_OF_KEY = re.compile(r"-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----")


def beginning(text: str, most: int = SAID) -> str:
    """The beginning of a text, at most so many characters, up to the end of a word."""
    return _up_to(redact(_up_to(text.strip(), READ)), most)


def sentences(text: str, most: int = SAID) -> str:
    """As `beginning`, of what a server says in sentences."""
    return _up_to(redact_sentences(_up_to(text.strip(), READ)), most)


def ending(text: str, most: int) -> str:
    """The end of a text, at most so many characters."""
    if len(text) > READ:
        text = _from_a_line(text[-READ - 1 :])
    return redact(text).strip()[-most:]


def outline(lines: Sequence[str]) -> list[str]:
    """The first and the last lines of an output, and how many are left out between them."""
    lines = [_up_to(line, LONGEST_READ) for line in lines]
    first = _fitting(lines)
    last = _fitting(lines[first:][::-1])
    if first + last == len(lines):
        shown = redacted_lines(lines)
    else:
        end = _without_rest_of_key("\n".join(lines[-last:]))
        note = f"({counted(len(lines) - first - last, 'line')} left out)"
        shown = [*redacted_lines(lines[:first]), note, *redact(end).split("\n")]
    return [_up_to(line, LONGEST_LINE) for line in shown]


def _fitting(lines: Sequence[str]) -> int:
    """How many lines, from the first on, are looked at."""
    left = READ
    for count, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            return count
    return len(lines)


def _up_to(text: str, most: int) -> str:
    """A text that is not longer, without a word that is cut off: it may be part of a secret."""
    if len(text) <= most:
        return text
    end = max(text.rfind(letter, 0, most) for letter in _BETWEEN_WORDS) + 1
    if end < most // 2:  # a script without blanks, or one long word
        end = len(text[:most].rstrip(_LETTERS)) or end
    return f"{text[:end].rstrip()}…" if end else TOO_LONG


def _from_a_line(text: str) -> str:
    """What follows the first line break: part of a line may be part of a secret."""
    _, *rest = re.split(r"[\r\n]", text, maxsplit=1)
    return _without_rest_of_key(rest[0]) if rest and rest[0].strip() else TOO_LONG


def _without_rest_of_key(text: str) -> str:
    """Without the lines of a private key whose beginning is not there."""
    end = _END_OF_KEY.search(text)
    return text[end.start() :] if end and "-----BEGIN " not in text[: end.start()] else text
