"""Finds in a program's output why the program failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpufleet.core.entries import Entry, Sourced, entry_loader

MAX_SEARCHED_LINES = 5000  # searched at the end of an output
MAX_SEARCHED_LINE_CHARS = 2000  # searched in each line
_PATH = re.compile(r"(?<![\w:/.])/[\w.+@%/~-]*\w")
_PROGRESS = re.compile(
    r"(Get|Hit|Ign):\d+ |Fetched \d|\(Reading database|Progress: \[|Selecting previously "
    r"|Preparing to |Unpacking |Setting up |Processing triggers |Reading (package|state)"
    r"|Building dependency |\s*\d{1,3} ?%|.*\| +[\d.]+ ?[kMG]?B? +[\d:]+( ETA)?\s*$"
)  # progress lines of apt, dpkg, yum and dnf


class Cause(Sourced):
    """One known cause of a failure, an entry of causes.yaml."""

    name: str
    cause: str
    remedy: str
    patterns: tuple[str, ...]
    path: bool = False

    @cached_property
    def expressions(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(re.compile, self.patterns))


class Causes(Entry):
    """causes.yaml"""

    causes: tuple[Cause, ...]


load_causes = entry_loader(Causes, "core/causes")


@dataclass(frozen=True, slots=True)
class Found:
    """The cause of a failure, a sentence without its full stop, and its remedy."""

    name: str
    text: str
    remedy: str


def find_cause(lines: Sequence[str]) -> Found | None:
    """The last known cause in an output: an earlier error did not end the program.

    Returns None if the output has no known cause.
    """
    for line in reversed(lines[-MAX_SEARCHED_LINES:]):
        searched = line[:MAX_SEARCHED_LINE_CHARS]
        for cause in load_causes().causes:
            for expression in cause.expressions:
                if match := expression.search(searched):
                    return _found(cause, match)
    return None


def _found(cause: Cause, match: re.Match[str]) -> Found:
    what = match.groupdict().get("what")
    if not what and cause.path and (path := _PATH.search(match.string)):
        what = path.group()
    text = cause.cause.format(what=f" ({what})" if what else "")
    return Found(cause.name, text, cause.remedy)


def without_progress(lines: Iterable[str]) -> list[str]:
    """The lines without progress and overwritten text, or, if that leaves none, with progress."""
    ends = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines]
    said: Sequence[str] = [line for line in ends if line and not _PROGRESS.match(line)]
    return list(said) or [line for line in ends if line]
