"""What a program says in sentences, without its secrets: values are masked, prose is not."""

from __future__ import annotations

import re

from gpufleet.core.redact import INNER, NAME, QUOTE, without_forms

MASK = "***"
# a name and its sign; Kubernetes has the kind of an error between them and the value
_HEAD = re.compile(
    rf"""["']?(?P<name>{NAME}){QUOTE}?\s*(?P<sign>[=:])(?P<gap>\s*)
        (?:(?-i:[A-Z][a-z]{{1,30}}(?:[ ][a-z]{{1,30}})?):\s+)?""",
    re.IGNORECASE | re.VERBOSE,
)
_HEADER = re.compile(r"(?:authorization|cookie)\Z", re.IGNORECASE)
_LISTED = re.compile(r"[\[{-]")  # of JSON, YAML and Go
_QUOTED = re.compile(
    rf"""(?:{INNER}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')(?:["'\w]\S*)?""",
    re.IGNORECASE | re.VERBOSE,
)
_OPENED = re.compile(QUOTE, re.IGNORECASE)
_WORD = re.compile(r"\S+")
_LINE = re.compile(r"[^\n]*")
_DIGIT = re.compile(r"\S{0,300}\d")
# one word: at the end of a clause, or before the next name and its value
_ALONE = re.compile(r"[^\s\"']{1,300}(?:\s{0,9}(?:[,;}\]]|\Z|\n)|\s{1,9}[\w.-]{1,300}[:=]\S)")
_UP_TO_QUOTE = re.compile(r"(?:[^\n\"';=:]|(?<=\w)'(?=\w)){1,300}(?<=[\s(])(?=[\"'])")


def redact_sentences(text: str) -> str:
    """As `redact`, for what a program says in sentences: `auth: the certificate has expired` is no
    value of a key. What a quote opens and nothing closes is masked to the end of the text."""
    text = without_forms(text)
    shown: list[str] = []
    at = 0
    while head := _HEAD.search(text, at):
        begin, end = _value(text, head)
        opened = _OPENED.match(text, begin)
        quote = opened[0] if opened else ""
        shown += [text[at:begin], f"{quote}{MASK}{quote}" if end > begin else ""]
        at = end
    return "".join([*shown, text[at:]])


def _value(text: str, head: re.Match[str]) -> tuple[int, int]:
    """Where a value begins and ends; both are the same where prose follows."""
    begin = head.end()
    if _HEADER.search(head["name"]) or _LISTED.match(text, begin):
        return begin, _end(_LINE, text, begin)
    if _OPENED.match(text, begin):
        return begin, _quoted(text, begin)
    if head["sign"] == "=" or _DIGIT.match(text, begin) or _ALONE.match(text, begin):
        return begin, _end(_WORD, text, begin)
    if not head["gap"] and text[: head.start("name")][-1:] != ":":  # else a user of Kubernetes
        return begin, _end(_WORD, text, begin)
    prose = _UP_TO_QUOTE.match(text, begin)
    return (prose.end(), _quoted(text, prose.end())) if prose else (begin, begin)


def _quoted(text: str, begin: int) -> int:
    found = _QUOTED.match(text, begin)
    return found.end() if found else len(text)


def _end(pattern: re.Pattern[str], text: str, begin: int) -> int:
    found = pattern.match(text, begin)
    return found.end() if found else begin
