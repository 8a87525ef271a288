"""`gpufleet explain`: explain a finding or an XID by its code, a data key, or a pasted error."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import click

import gpufleet
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import KNOWN_KINDS, Kind, finding_rooms
from gpufleet.core.paths import shipped_path
from gpufleet.core.settings import values_of
from gpufleet.core.visible import one_line
from gpufleet.status.causes import find_causes, xid_cause
from gpufleet.status.explained import (
    EXPLAIN_WIDTH,
    UNKNOWN_ERROR,
    Explained,
    cause_text,
    explained_json,
    explained_texts,
)

FINDINGS = "reference/findings"
SANDBOX = "GF6"  # prefix of the codes of a separate distribution
MAX_INPUT_BYTES = 16 * 2**20  # of standard input
MAX_SUGGESTIONS = 15  # keys that one message names
_DIGITS = re.compile(r"\d{3}", re.ASCII)  # the number of a code
_CODE = re.compile(r"\bGF\d{3}\b", re.ASCII)
_NAME = re.compile(r"(?i:GF\w+|xid[-_ ]?\w+)|\d{3}|[a-z][a-z0-9]*(?:_[a-z0-9]+)+", re.ASCII)
_NUMBER = re.compile(r"\{(?P<name>\w+):[^{}|]*\|(?P<several>[^{}]*)\}")  # of visible.Count


@click.command()
@click.argument("words", metavar="CODE|KEY|ERROR...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(words: tuple[str, ...], as_json: bool) -> None:
    """Explain a finding, an XID, a data key or a pasted error.

    Examples: GF112 or 112, XID-79, driver_branch. Of a finding it prints what it means and what to
    do, of a key its values and default. Runs replace the placeholders in braces.

    An error is a message, a line of a log, or a screenful on standard input (`gpufleet explain <
    error.txt`, or `-`). Of an error it prints the cause, how to make sure, and what to do. If an
    error has several causes, start with the first. Of a long text the end is read, 5000 lines.

    Exit status: 0 explained; 1 the error names no known cause; 2 usage error.
    """
    rooms = finding_rooms(gpufleet)
    explained = _explained(words, rooms)
    if as_json:
        click.echo(json.dumps(explained_json(explained), indent=2))
    elif explained:
        click.echo("\n\n".join(explained_texts(explained)))
    else:
        click.echo(UNKNOWN_ERROR)
    sys.exit(ExitStatus.CONVERGED if explained else ExitStatus.FAILED)


def _explained(words: Sequence[str], rooms: Mapping[str, str]) -> list[Explained]:
    """The meaning of each word of a command line. Raises UsageError for an unknown word."""
    if not words or words == ("-",):
        return _error(_standard_input(), rooms)
    keys = _keys()
    if all(_is_name(word, keys) for word in words):
        return [_name(word, keys, rooms) for word in words]
    if found := _error(" ".join(words), rooms):
        return found
    if len(words) == 1 and not re.search(r"\s", words[0]):
        raise click.UsageError(_unknown(words[0], keys))
    return []


def _standard_input() -> str:
    """The text on standard input. Raises UsageError if it is empty."""
    taken = b"" if sys.stdin.isatty() else sys.stdin.buffer.read(MAX_INPUT_BYTES)
    text = taken.decode("utf-8", "replace")
    if not text.strip():
        raise click.UsageError("Give a code, a data key or an error, or an error on stdin.")
    return text


def _is_name(word: str, keys: Mapping[str, str]) -> bool:
    return word in keys or _NAME.fullmatch(word) is not None


def _name(word: str, keys: Mapping[str, str], rooms: Mapping[str, str]) -> Explained:
    """The meaning of a finding, an XID or a key. Raises UsageError for an unknown word."""
    code = f"GF{word}" if _DIGITS.fullmatch(word) else word.upper()
    if word in keys:
        return Explained("key", word, keys[word])
    if code in KNOWN_KINDS or code.startswith(SANDBOX):
        return _finding(code, rooms)
    if found := xid_cause(word):
        return Explained("cause", found.name, cause_text(found), found)
    raise click.UsageError(_unknown(word, keys))


def _error(text: str, rooms: Mapping[str, str]) -> list[Explained]:
    """The causes that an error names, then the findings whose codes are in it."""
    causes = [
        Explained("cause", found.name, cause_text(found, quoted=True), found)
        for found in find_causes(text)
    ]
    codes = dict.fromkeys(code for code in _CODE.findall(text) if code in KNOWN_KINDS)
    return [*causes, *(_finding(code, rooms) for code in codes)]


def _unknown(word: str, keys: Mapping[str, str]) -> str:
    if word.upper().startswith("XID"):
        return f"No XID in use has the code {one_line(word[3:]).strip(' -')}."
    if word.upper().startswith("GF"):
        return f"No finding has the code {word}. Codes are GF and three digits."
    if word.startswith(("ssh_", "_")):
        return f"{one_line(word)} is a key of pyinfra, see `gpufleet docs connection`."
    near = get_close_matches(word, keys, n=1)
    end = f" Did you mean {near[0]}?" if near else ""
    whole = re.compile(rf"(?<![a-z]){re.escape(word)}(?![a-z])", re.IGNORECASE)
    about = [key for key, text in keys.items() if whole.search(text)]
    if 0 < len(about) <= MAX_SUGGESTIONS:  # "the" is in every text
        end += f" Data keys about it: {', '.join(about)}."
    return f"{one_line(word)} is no code of a finding and no data key.{end}"


def _keys() -> dict[str, str]:
    """Every data key: its values, default and meaning."""
    from gpufleet.gpu_stack.settings import ROLES  # takes its time to load

    found = {}
    for model in ROLES:
        for name, field in model.model_fields.items():
            default = field.get_default(call_default_factory=True)
            text = textwrap.fill(str(field.description), EXPLAIN_WIDTH)
            values = f"Values: {values_of(field.annotation).replace('`', '')}"
            head = f"{model.prefix}{name}: data key of a host, group or cluster"
            values += "" if default is None else f"\nDefault: {default!r}"  # the text has the rest
            found[f"{model.prefix}{name}"] = f"{head}\n\n{text}\n\n{values}"
    return found


def describe_kind(kind: Kind) -> tuple[str, str]:
    """The meaning and the remedy of a kind of finding, with placeholders in braces."""
    texts = (kind.description or kind.message, kind.advice or kind.remedy)
    message, remedy = (
        _NUMBER.sub(r"{\g<name>} \g<several>", text).replace("{{", "{").replace("}}", "}")
        for text in texts
    )
    return message, remedy


def _finding(code: str, rooms: Mapping[str, str]) -> Explained:
    if code not in KNOWN_KINDS:
        text = f"{code} is a finding of the sandbox: its text and remedy are in the output."
        return Explained("finding", code, text)
    kind = KNOWN_KINDS[code]
    body = "\n\n".join(textwrap.fill(text, EXPLAIN_WIDTH) for text in describe_kind(kind))
    place = address_of(code, rooms[code])
    address = f"\n\n{place}" if place else ""
    head = f"{code} {kind.severity.value}: {kind.title}"
    return Explained("finding", code, f"{head}\n\n{body}{address}")


def address_of(code: str, room: str) -> str | None:
    """The address of a finding's entry: on the site in GPUFLEET_DOCS, or in a checkout.

    None if neither exists; then `explain` has printed the whole entry.
    """
    if site := os.environ.get("GPUFLEET_DOCS"):
        return f"{site.rstrip('/')}/{FINDINGS}/{room}.html#{code.lower()}"
    page = shipped_path("docs") / FINDINGS / f"{room}.md"
    return f"{page}#{code.lower()}" if page.is_file() else None
