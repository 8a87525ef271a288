"""The output of a failed command, for people: without secrets, our own message first.

pyinfra prints it as it is; the report repeats its errors.
"""

from __future__ import annotations

from collections.abc import Callable

from pyinfra.connectors.util import OutputLine

from gpufleet.core.excerpt import outline
from gpufleet.core.visible import barred, one_line
from gpufleet.host.asking import MARK
from gpufleet.run.step_results import own_line


def for_people(host: str, lines: list[OutputLine]) -> None:
    """Change the lines of a command that failed on `host`."""
    _change(lines, "stdout", lambda texts: _redacted(_without_frame(texts)))
    _change(lines, "stderr", lambda texts: _ours_first(host, _redacted(texts)))


def _change(lines: list[OutputLine], stream: str, change: Callable[[list[str]], list[str]]) -> None:
    """Change the texts of one stream; they may become fewer."""
    mine = [line for line in lines if line.buffer_name == stream]
    texts = change([line.line for line in mine])
    for line, text in zip(mine, texts, strict=False):
        line.line = text
    gone = set(map(id, mine[len(texts) :]))
    lines[:] = [line for line in lines if id(line) not in gone]


def _without_frame(texts: list[str]) -> list[str]:
    """Without the marks of `framed` and the line break before each."""
    kept: list[str] = []
    for text in texts:
        if text != MARK:
            kept.append(text)
        elif kept and not kept[-1]:
            kept.pop()
    return kept


def _redacted(texts: list[str]) -> list[str]:
    return [one_line(text) for text in outline(texts)]


def _ours_first(host: str, texts: list[str]) -> list[str]:
    """What programs printed before a script explains its failure, behind bars after that."""
    ours = own_line(host)
    start = next((number for number, text in enumerate(texts) if ours.match(text)), 0)
    return [*texts[start:], *barred(text for text in texts[:start] if text.strip())]
