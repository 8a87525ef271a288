"""Preflights of the user's repository: functions preflight_* in checks/preflight_*.py."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.node.findings import OWN_PREFLIGHT, OWN_PREFLIGHT_FAILED

CHECKS_FOLDER = Path("checks")  # of the working directory
PREFLIGHT_PREFIX = "preflight_"  # prefix of files and functions
Preflight = Callable[["PreflightHost"], object]


@dataclass(frozen=True, slots=True)
class PreflightHost:
    """The argument of a preflight. `data`: of the inventory; `facts`: as in `gpufleet doctor
    --json`, such as facts["kernel"]["release"]. Changes to them have no effect."""

    name: str
    groups: tuple[str, ...]
    data: Mapping[str, Any]
    facts: Mapping[str, Any]


def own_preflights(
    host: Callable[[], PreflightHost], folder: Path = CHECKS_FOLDER
) -> list[Finding]:
    """A blocker for each problem that a preflight returns, and for each preflight that fails.
    `host` makes the argument of one preflight."""
    found: list[Finding] = []
    for path in sorted(folder.glob(f"{PREFLIGHT_PREFIX}*.py")):
        functions, broken = _load(path)
        found += [broken] if broken else []
        for name, function in functions:
            found += _ask(path, name, function, host())
    return found


@cache
def _load(path: Path) -> tuple[list[tuple[str, Preflight]], Finding | None]:
    """The preflights of a file, or a finding if it fails. Cached, because a run has many hosts."""
    try:
        there = runpy.run_path(str(path))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary: a file of the user's
        return [], _failed(path, "its import", error)
    return [(name, value) for name, value in there.items()
            if name.startswith(PREFLIGHT_PREFIX) and callable(value)], None  # fmt: skip


def _ask(path: Path, name: str, function: Preflight, host: PreflightHost) -> Iterator[Finding]:
    try:
        answer = function(host)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the boundary: a function of the user's
        yield _failed(path, name, error)
        return
    texts = [answer] if isinstance(answer, str) else answer or []
    if isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts):
        yield from (OWN_PREFLIGHT(file=path, name=name, problem=text) for text in texts if text)
    else:
        wrong = f"it returned {type(answer).__name__}, not None, a text or a list of texts"
        yield OWN_PREFLIGHT_FAILED(file=path, name=name, place=path, error=wrong)


def _failed(path: Path, name: str, error: BaseException) -> Finding:
    lines = [each.lineno for each in traceback.extract_tb(error.__traceback__)
             if each.filename == str(path)]  # fmt: skip
    line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
    place = f"{path}, line {line}" if line else str(path)
    text = f"{type(error).__name__}: {error}"
    return OWN_PREFLIGHT_FAILED(file=path, name=name, place=place, error=text)
