"""Formats the output of a failed command for users, with gpufleet's message first.

pyinfra prints it unchanged; the report repeats its errors.
"""

from __future__ import annotations

from collections.abc import Callable

from pyinfra.connectors.util import OutputLine

from gpufleet.core.causes import find_cause, find_reason_line, without_progress
from gpufleet.core.quoting import keep_output, quote_line, quote_lines
from gpufleet.core.visible import BAR, bar_lines
from gpufleet.host.asking import OUTPUT_MARK
from gpufleet.run.step_results import own_line

LAST_LINES = 8  # of the output of a failed command


def for_people(host: str, lines: list[OutputLine]) -> None:
    """Change the output lines of a command that failed on `host`."""
    _change(lines, "stdout", lambda texts: quote_lines(host, _without_frame(texts)))
    _change(lines, "stderr", lambda texts: _ours_first(host, texts))


def _change(lines: list[OutputLine], stream: str, change: Callable[[list[str]], list[str]]) -> None:
    """Change the texts of one stream, which may reduce their number."""
    mine = [line for line in lines if line.buffer_name == stream]
    texts = change([line.line for line in mine])
    for line, text in zip(mine, texts, strict=False):
        line.line = text
    gone = set(map(id, mine[len(texts) :]))
    lines[:] = [line for line in lines if id(line) not in gone]


def _without_frame(texts: list[str]) -> list[str]:
    """Remove the marks of `framed` and the line break before each."""
    kept: list[str] = []
    for text in texts:
        if text != OUTPUT_MARK:
            kept.append(text)
        elif kept and not kept[-1]:
            kept.pop()
    return kept


def _ours_first(host: str, texts: list[str]) -> list[str]:
    """The script's explanation with the cause that the output names, then the last lines of the
    output behind bars, with the line before them that says why the program failed, then the path of
    the log with the whole output."""
    ours = own_line(host)
    start = next((number for number, text in enumerate(texts) if ours.match(text)), len(texts))
    if start == len(texts):
        return quote_lines(host, texts)
    explained: list[str] = []
    output = texts[:start]
    for text in texts[start:]:
        quoted = text.startswith(BAR)
        (output if quoted else explained).append(text[len(BAR) :] if quoted else text)
    shown = without_progress(output)[-LAST_LINES:]
    reason = find_reason_line(output)
    if reason and reason not in shown:
        shown = [reason, *shown[1:]]
    log = [] if shown == output else [f"  See {keep_output(host, output)}"]
    return [
        *map(quote_line, _with_cause(explained, output)),
        *bar_lines(map(quote_line, shown)),
        *log,
    ]


def _with_cause(explained: list[str], output: list[str]) -> list[str]:
    """Put the cause before the message, and replace the general remedy by the cause's remedy."""
    cause = find_cause(output)
    if cause is None or cause.text in explained[0]:
        return explained
    code, message = explained[0].split(": ", 1)
    return [f"{code}: {cause.text}. {message}", f"  {cause.remedy}", *explained[2:]]
