"""`gpufleet explain`: explain a finding or an XID by its code, a data key, a check, or an error."""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import click

import gpufleet
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import KNOWN_KINDS, finding_rooms
from gpufleet.core.visible import one_line
from gpufleet.doctor.explained import describe_check
from gpufleet.doctor.models import DoctorCheck
from gpufleet.doctor.table import all_checks
from gpufleet.status.causes import find_causes, xid_cause
from gpufleet.status.explained import (
    UNKNOWN_ERROR,
    Explained,
    cause_text,
    explained_json,
    explained_texts,
)
from gpufleet.status.meanings import SANDBOX_CODES, describe_finding, describe_keys

MAX_INPUT_BYTES = 2**20  # searched at the end of standard input
# PowerShell's > writes UTF-16
UTF16_CODECS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
MAX_SUGGESTIONS = 15  # keys that one message names
_DIGITS = re.compile(r"\d{3}", re.ASCII)  # the number of a code
_CODE = re.compile(r"\bGF\d{3}\b", re.ASCII)
_JOINED_XID = re.compile(r"(?i)^xid_?(?=\d)")  # as in xid79
_NAME = re.compile(r"(?i:GF\w+|xid[-_ ]?\w+)|\d{3}|[a-z][a-z0-9]*(?:_[a-z0-9]+)+", re.ASCII)


@click.command()
@click.argument("words", metavar="CODE|KEY|CHECK|ERROR...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain(words: tuple[str, ...], as_json: bool) -> None:
    """Explain a finding, an XID, a key, a check or a pasted error.

    Examples: GF112 or 112, XID-79, driver_branch, chain.runtime. Of a finding it prints what it
    means and what to do, of a key its values and default, of a check its next steps. Words in
    capitals, such as PATH, stand for the details of a case.

    An error is a message, a line of a log, or a screenful on standard input (`gpufleet explain <
    error.txt`, or `-`). Of an error it prints the cause, how to make sure, and what to do. If an
    error has several causes, start with the first. Only the last 5000 lines or 1 MiB are searched.

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
    keys = describe_keys()
    if all(_is_name(word, keys) for word in words):
        return [_name(word, keys, rooms) for word in words]
    if found := _error(" ".join(words), rooms):
        return found
    if len(words) == 1 and not re.search(r"\s", words[0]):
        raise click.UsageError(_unknown(words[0], keys))
    return []


def _standard_input() -> str:
    """The text on standard input. Raises UsageError if it is empty."""
    taken = start = b"" if sys.stdin.isatty() else sys.stdin.buffer.read(MAX_INPUT_BYTES)
    while start and (more := sys.stdin.buffer.read(MAX_INPUT_BYTES)):
        taken = (taken + more)[-MAX_INPUT_BYTES:]
    text = taken.decode(UTF16_CODECS.get(start[:2], "utf-8"), "replace").lstrip("\ufeff")
    if not text.strip():
        raise click.UsageError("Give a code, a key, a check or an error, or an error on stdin.")
    return text


def _is_name(word: str, keys: Mapping[str, str]) -> bool:
    return word in keys or word in _checks() or _NAME.fullmatch(word) is not None


def _checks() -> dict[str, DoctorCheck]:
    return {check.id: check for check in all_checks()}


def _name(word: str, keys: Mapping[str, str], rooms: Mapping[str, str]) -> Explained:
    """The meaning of a finding, an XID, a key or a check. Raises UsageError for an unknown word."""
    code = f"GF{word}" if _DIGITS.fullmatch(word) else word.upper()
    if word in keys:
        return Explained("key", word, keys[word])
    if word in _checks():
        return describe_check(_checks()[word])
    if code in KNOWN_KINDS or code.startswith(SANDBOX_CODES):
        return describe_finding(code, rooms)
    if found := xid_cause(_JOINED_XID.sub("XID ", word)):
        return Explained("cause", found.name, cause_text(found), found)
    raise click.UsageError(_unknown(word, keys))


def _error(text: str, rooms: Mapping[str, str]) -> list[Explained]:
    """The causes that an error names, then the findings whose codes are in it."""
    causes = [
        Explained("cause", found.name, cause_text(found, quoted=True), found)
        for found in find_causes(text)
    ]
    codes = dict.fromkeys(code for code in _CODE.findall(text) if code in KNOWN_KINDS)
    return [*causes, *(describe_finding(code, rooms) for code in codes)]


def _unknown(word: str, keys: Mapping[str, str]) -> str:
    if word.upper().startswith("XID"):
        return f"No XID in use has the code {one_line(word[3:]).strip(' -')}."
    if word.upper().startswith("GF"):
        return f"No finding has the code {word}. Codes are GF and three digits."
    if word.startswith(("ssh_", "_")):
        return f"{one_line(word)} is a key of pyinfra, see `gpufleet docs connection`."
    near = get_close_matches(word, [*keys, *_checks()], n=1)
    end = f" Did you mean {near[0]}?" if near else ""
    whole = re.compile(rf"(?<![a-z]){re.escape(word)}(?![a-z])", re.IGNORECASE)
    about = [key for key, text in keys.items() if whole.search(text)]
    if 0 < len(about) <= MAX_SUGGESTIONS:  # "the" is in every text
        end += f" Data keys about it: {', '.join(about)}."
    return f"{one_line(word)} is no code of a finding, no data key and no check of doctor.{end}"
