"""Names of many hosts in few words, as Slurm and ClusterShell write them: gpu-[01-37]. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpufleet.core.visible import one_line

_NUMBERED = re.compile(r"(?P<head>.*?)(?P<number>\d+)(?P<tail>\D*)", re.ASCII)


def folded(names: Iterable[str]) -> list[str]:
    """The names, with runs of numbers as ranges; digits are kept: [08-10], and 8 is not 08."""
    found: list[str] = []
    run: list[re.Match[str]] = []
    for name in map(one_line, names):
        match = _NUMBERED.fullmatch(name)
        if match and run and _follows(run[-1], match):
            run.append(match)
            continue
        found += _range(run)
        run = [match] if match else []
        if not match:
            found.append(name)
    return found + _range(run)


def _follows(last: re.Match[str], match: re.Match[str]) -> bool:
    same = (last["head"], last["tail"]) == (match["head"], match["tail"])
    width = len(match["number"])
    padded = width == len(last["number"]) or not match["number"].startswith("0")
    return same and padded and int(match["number"]) == int(last["number"]) + 1


def _range(run: list[re.Match[str]]) -> list[str]:
    if len(run) < 2:
        return [match.group() for match in run]
    first, last = run[0], run[-1]
    return [f"{first['head']}[{first['number']}-{last['number']}]{first['tail']}"]


def counted(number: int, word: str) -> str:
    """A number with its noun: 1 host, 2 hosts."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
