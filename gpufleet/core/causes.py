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
_REASONS = (  # lines that say why a program failed, the nearest to the cause first
    re.compile(r":\d+: (fatal )?error: "),  # compilers
    re.compile(r"Error! "),  # DKMS
    re.compile(r"(?i)error: |dpkg: error |E: (?!Sub-process)"),  # rpm, dpkg, apt
)


class Cause(Sourced):
    """One known cause of a failure. causes.yaml explains the fields."""

    name: str
    cause: str
    make_sure: str
    remedy: str
    link: str
    code: str = ""
    patterns: tuple[str, ...] = ()
    path: bool = False

    @cached_property
    def expressions(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(each, re.MULTILINE) for each in self.patterns)


class Causes(Entry):
    """causes.yaml"""

    causes: tuple[Cause, ...]


load_causes = entry_loader(Causes, "core/causes")


@dataclass(frozen=True, slots=True)
class Found:
    """A cause that a line names. `text`: the cause as a sentence without its full stop."""

    cause: Cause
    text: str
    line: str

    @property
    def name(self) -> str:
        return self.cause.name

    @property
    def remedy(self) -> str:
        return self.cause.remedy


def find_cause(lines: Sequence[str]) -> Found | None:
    """The last known cause in an output: an earlier error did not end the program.

    Returns None if the output has no known cause.
    """
    known = load_causes().causes
    for line in reversed(lines[-MAX_SEARCHED_LINES:]):
        if found := cause_in(line, known):
            return found
    return None


def find_reason_line(lines: Iterable[str]) -> str:
    """The line of an output that says why the program failed: the first error, or else the last
    line that is no progress. "" without lines.

    ["Error! Bad return status for module build", "E: Sub-process dpkg returned an error code (1)"]
    -> "Error! Bad return status for module build"
    """
    said = without_progress(list(lines)[-MAX_SEARCHED_LINES:])
    for reason in _REASONS:
        if found := next((line for line in said if reason.search(line)), ""):
            return found
    return said[-1] if said else ""


def cause_in(line: str, causes: Iterable[Cause]) -> Found | None:
    """The first of the causes that a line names."""
    searched = line[:MAX_SEARCHED_LINE_CHARS]
    for cause in causes:
        for expression in cause.expressions:
            if match := expression.search(searched):
                return found_with(cause, line, _detail(cause, match))
    return None


def found_with(cause: Cause, line: str, detail: str = "") -> Found:
    """A cause with what its line names, such as a path, in brackets."""
    return Found(cause, cause.cause.format(what=f" ({detail})" if detail else ""), line)


def _detail(cause: Cause, match: re.Match[str]) -> str:
    detail = match.groupdict().get("what") or ""
    if not detail and cause.path and (path := _PATH.search(match.string)):
        return path.group()
    return detail


def without_progress(lines: Iterable[str]) -> list[str]:
    """The lines without progress and overwritten text, or, if that leaves none, with progress."""
    ends = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines]
    said: Sequence[str] = [line for line in ends if line and not _PROGRESS.match(line)]
    return list(said) or [line for line in ends if line]
