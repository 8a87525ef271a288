"""What `gpufleet explain` prints about findings, keys, checks and causes, as text and as JSON."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpufleet.core.causes import Found
from gpufleet.core.visible import bar_lines, one_line

SCHEMA = 1  # of explain.schema.json
EXPLAIN_WIDTH = 80
QUOTED_CHARS = 200  # of the line that names a cause
FOLLOWING = "Also in the text, and often a consequence:"
UNKNOWN_ERROR = """\
The text names no cause that gpufleet knows.

Collect these on the host, and give them to gpufleet explain on standard input:
  the whole output of the command that failed, not only its last line
  dmesg -T | grep -iE 'nvrm|nvidia|xid'
  nvidia-smi; dkms status; journalctl -b -u containerd -u docker -u kubelet
In a cluster: kubectl describe pod POD; kubectl get events -A

`gpufleet doctor INVENTORY --limit HOST` shows the host in depth."""
_COMMAND = re.compile(r"`[^`]*`")
_GLUE = "\0"  # in place of a blank that must not become a line break
_URL = re.compile(r"https://\S+")


@dataclass(frozen=True, slots=True)
class Explained:
    """One explained word, or one cause of an error. `found`: of a cause."""

    kind: Literal["finding", "key", "check", "cause"]
    name: str
    text: str
    found: Found | None = None


def cause_text(found: Found, *, quoted: bool = False) -> str:
    """A cause as paragraphs; `quoted` adds the line that names it."""
    cause = found.cause
    more = f" `gpufleet explain {cause.code}` says more." if cause.code else ""
    line = found.line if len(found.line) <= QUOTED_CHARS else f"{found.line[:QUOTED_CHARS]}…"
    parts = [_wrapped(f"{one_line(found.text)}.")]
    parts += bar_lines([line]) if quoted else []
    parts += [
        _wrapped(f"Make sure: {cause.make_sure}"),
        _wrapped(f"What to do: {cause.remedy}{more}"),
    ]
    return "\n\n".join([*parts, "\n".join(cause_sources(found))])


def cause_sources(found: Found) -> list[str]:
    """The addresses of the pages that a cause is from."""
    return _URL.findall(found.cause.source)


def explained_texts(explained: Sequence[Explained]) -> Iterator[str]:
    """The texts in order, with a heading before the causes after the first."""
    for number, each in enumerate(explained):
        if number == 1 and each.kind == explained[0].kind == "cause":
            yield FOLLOWING
        yield each.text


def explained_json(explained: Sequence[Explained]) -> dict[str, Any]:
    """The document of `--json`, which explain.schema.json describes."""
    causes = [each.found for each in explained if each.found]
    return {
        "schema": SCHEMA,
        "recognized": bool(explained),
        "causes": [_cause_json(found) for found in causes],
        **{
            f"{kind}s": {each.name: each.text for each in explained if each.kind == kind}
            for kind in ("finding", "key", "check")
        },
    }


def _cause_json(found: Found) -> dict[str, Any]:
    return {
        "name": found.name,
        "link": found.cause.link,
        "code": found.cause.code or None,
        "cause": found.text,
        "line": found.line,
        "make_sure": found.cause.make_sure,
        "remedy": found.remedy,
        "sources": cause_sources(found),
    }


def _wrapped(text: str) -> str:
    """A paragraph whose commands, in backticks, stay on one line."""
    whole = _COMMAND.sub(lambda command: command[0].replace(" ", _GLUE), text)
    lines = textwrap.fill(whole, EXPLAIN_WIDTH, break_long_words=False, break_on_hyphens=False)
    return lines.replace(_GLUE, " ")
