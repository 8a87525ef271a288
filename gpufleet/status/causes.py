"""Finds the known causes in a pasted error, the first broken link of the chain first. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from pydantic import model_validator

from gpufleet.core.causes import (
    MAX_SEARCHED_LINE_CHARS,
    MAX_SEARCHED_LINES,
    Cause,
    Causes,
    Found,
    cause_in,
    found_with,
    load_causes,
)
from gpufleet.core.entries import entry_loader
from gpufleet.monitoring.xids import load_xids

MAX_UNWRAPPED_LINES = 200  # more is no screenful
_CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_LINE_BREAK = re.compile(r"\r?\n|\r|\\+n(?![a-z]+[/\\])")  # real, or escaped as in JSON
_ESCAPED_QUOTE = re.compile(r"\\+(?=[\"'])")
_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'})
_XID = re.compile(  # as the kernel, DCGM and people write it
    r"(?:\bxid(?:[ -]error)?s?\b[\s:=#-]*(?P<gpu>\([^)]*\))?[\s:=]*|XID_ERRORS\{[^}]*\} )"
    r"(?P<code>\d{1,3})(?![\d:.])",
    re.IGNORECASE,
)
_EARLIER = re.compile(r"caused by previous Xid (?P<code>\d{1,3})\b")


class StackCauses(Causes):
    """causes.yaml of this room. `chain`: links in the order in which one needs the other."""

    chain: tuple[str, ...]

    @model_validator(mode="after")
    def _check(self) -> StackCauses:
        every = [*self.causes, *load_causes().causes]
        names = [cause.name for cause in every]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"named twice: {', '.join(sorted(twice))}")
        if lost := {cause.link for cause in every} - {*self.chain}:
            raise ValueError(f"not in the chain: {', '.join(sorted(lost))}")
        return self


load_stack_causes = entry_loader(StackCauses, "status/causes")


@lru_cache(maxsize=1)
def known_causes() -> tuple[Cause, ...]:
    """Every cause that a text may name: those of GPU stacks come before those of any program."""
    return (*load_stack_causes().causes, *load_causes().causes)


def find_causes(text: str) -> list[Found]:
    """The causes that a text names, each once. Only the last lines of a long text are searched."""
    lines = error_lines(text)[-MAX_SEARCHED_LINES:]
    found = _by_name(lines) or _by_name(_unwrapped(lines[-MAX_UNWRAPPED_LINES:]))
    chain = load_stack_causes().chain
    return sorted(found.values(), key=lambda each: chain.index(each.cause.link))


def error_lines(text: str) -> list[str]:
    """The lines of a text as patterns expect them: without colors, escaped quotes and runs of
    blanks."""
    lines = _LINE_BREAK.split(_CONTROL_SEQUENCE.sub("", text).translate(_STRAIGHT))
    return [line for each in lines if (line := " ".join(_ESCAPED_QUOTE.sub("", each).split()))]


def xid_cause(word: str) -> Found | None:
    """The XID that a word or line names, or None if it names no XID in use."""
    if match := _EARLIER.search(word) or _XID.search(word):
        place = (match.groupdict().get("gpu") or "").strip("()")
        if cause := load_xids().cause(int(match["code"])):
            return found_with(cause, word, place)
    return None


def _by_name(lines: list[str]) -> dict[str, Found]:
    found: dict[str, Found] = {}
    lines = [line[:MAX_SEARCHED_LINE_CHARS] for line in dict.fromkeys(lines)]
    causes = _possible("\n".join(lines))
    for line in lines:
        if each := xid_cause(line) or cause_in(line, causes):
            found.setdefault(each.name, each)
    return found


def _possible(text: str) -> list[Cause]:
    """The causes that any line of a text may name: much faster than to search in each line."""
    return [cause for cause in known_causes() if any(e.search(text) for e in cause.expressions)]


def _unwrapped(lines: list[str]) -> list[str]:
    """Each line with the next line, for a text that a terminal has wrapped."""
    return [first + blank + second for first, second in pairwise(lines) for blank in ("", " ")]
