"""Small changes of a rule, each of which its tests have to notice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Rule = dict[str, Any]
_COMPARISON = re.compile(r"(?<![=!<>~])(>=|<=|==|!=|>|<)(?=\s)")
_THRESHOLD = re.compile(r"((?:>=|<=|==|>|<) )(\d+(?:\.\d+)?)\b")
_RANGE = re.compile(r"\[(\d+)([smhd])\]")
_MATCHER = re.compile(r'(\w)(=~|!~|!=|=)"')
_OPPOSITE = {">": "<=", "<": ">=", ">=": "<", "<=": ">", "==": "!=", "!=": "=="}
_FLIPPED = {"=~": "!~", "!~": "=~", "=": "!=", "!=": "="}
_JOIN = re.compile(r"\b(unless|and|or)\b")


def mutants(rule: Rule) -> Iterator[tuple[str, Rule]]:
    """(what was changed, the rule) for every comparison, number, matcher, range, join and `for`."""
    expr = rule["expr"]
    for name, text in _expressions(expr):
        if text != expr:
            yield name, {**rule, "expr": text}
    number, unit = re.fullmatch(r"(\d+)([smhd])", rule["for"]).groups()  # type: ignore[union-attr]
    if int(number):
        yield "for: 0", {**rule, "for": "0s"}
        yield "for: longer", {**rule, "for": f"{int(number) * 3}{unit}"}
    else:
        yield "for: some", {**rule, "for": "20m"}


def _expressions(expr: str) -> Iterator[tuple[str, str]]:
    for place, found in enumerate(_COMPARISON.finditer(expr), 1):
        yield f"comparison {place}", _put(expr, found, 1, _OPPOSITE[found[1]])
    for place, found in enumerate(_THRESHOLD.finditer(expr), 1):
        value = float(found[2])
        yield f"threshold {place} up", _put(expr, found, 2, f"{value * 2 + 2:g}")
        lower = value / 2 if value else -1
        yield f"threshold {place} down", _put(expr, found, 2, f"{lower:g}")
    for place, found in enumerate(_RANGE.finditer(expr), 1):
        if found.start() and expr[found.start() - 1] in "):":
            continue
        yield f"range {place} shorter", _put(expr, found, 1, f"{max(int(found[1]) // 5, 1)}")
    for place, found in enumerate(_MATCHER.finditer(expr), 1):
        yield f"matcher {place}", _put(expr, found, 2, _FLIPPED[found[2]])
    for place, found in enumerate(_JOIN.finditer(expr), 1):
        yield f"join {place}", _put(expr, found, 1, "or" if found[1] != "or" else "unless")


def _put(text: str, found: re.Match[str], group: int, new: str) -> str:
    return text[: found.start(group)] + new + text[found.end(group) :]
