"""The output of a failed command, for people: our own message first.

pyinfra prints it as it is; the report repeats its errors.
"""

from __future__ import annotations

from collections.abc import Callable

from pyinfra.connectors.util import OutputLine

from gpufleet.core.quoting import quote_line, quote_lines
from gpufleet.core.visible import barred
from gpufleet.host.asking import MARK
from gpufleet.run.step_results import own_line


def for_people(host: str, lines: list[OutputLine]) -> None:
    """Change the lines of a command that failed on `host`."""
    _change(lines, "stdout", lambda texts: quote_lines(host, _without_frame(texts)))
    _change(lines, "stderr", lambda texts: _ours_first(host, texts))


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


def _ours_first(host: str, texts: list[str]) -> list[str]:
    """What programs printed before a script explains its failure, behind bars after that."""
    ours = own_line(host)
    start = next((number for number, text in enumerate(texts) if ours.match(text)), len(texts))
    if start == len(texts):
        return quote_lines(host, texts)
    others = [text for text in texts[:start] if text.strip()]
    return [*map(quote_line, texts[start:]), *barred(quote_lines(host, others))]
