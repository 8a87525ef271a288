"""`gpufleet explain`: explain a finding by its code, or the values of a data key."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping
from difflib import get_close_matches

import click

import gpufleet
from gpufleet.core.findings import KNOWN_KINDS, Kind, finding_rooms
from gpufleet.core.paths import shipped_path
from gpufleet.core.settings import values_of
from gpufleet.core.visible import one_line

FINDINGS = "reference/findings"
SANDBOX = "GF6"  # prefix of the codes of a separate distribution
EXPLAIN_WIDTH = 80
MAX_SUGGESTIONS = 15  # keys that one message names
_DIGITS = re.compile(r"\d{3}", re.ASCII)  # the number of a code
_NUMBER = re.compile(r"\{(?P<name>\w+):[^{}|]*\|(?P<several>[^{}]*)\}")  # of visible.Count


@click.command()
@click.argument("codes", metavar="CODE|KEY...", nargs=-1, required=True)
def explain(codes: tuple[str, ...]) -> None:
    """Explain findings (GF112) and data keys (driver_branch).

    A code may lack its letters: 112. Of a finding it prints what it means and what to do, of a key
    its values and default. Runs replace the placeholders in braces.

    Exit status: 0 every code and key is known; 2 usage error.
    """
    rooms = finding_rooms(gpufleet)
    keys = _keys()
    wanted = [f"GF{code}" if _DIGITS.fullmatch(code) else code for code in codes]
    texts = []
    for word in wanted:
        code = word.upper()
        if word in keys:
            texts.append(keys[word])
        elif code in KNOWN_KINDS or code.startswith(SANDBOX):
            texts.append(_entry(code, rooms))
        else:
            raise click.UsageError(_unknown(word, keys))
    click.echo("\n\n".join(texts))


def _unknown(word: str, keys: Mapping[str, str]) -> str:
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
            found[f"{model.prefix}{name}"] = f"{head}\n\n{text}\n\n{values}\nDefault: {default!r}"
    return found


def describe_kind(kind: Kind) -> tuple[str, str]:
    """The meaning and the remedy of a kind of finding, with placeholders in braces."""
    texts = (kind.description or kind.message, kind.advice or kind.remedy)
    message, remedy = (
        _NUMBER.sub(r"{\g<name>} \g<several>", text).replace("{{", "{").replace("}}", "}")
        for text in texts
    )
    return message, remedy


def _entry(code: str, rooms: Mapping[str, str]) -> str:
    if code not in KNOWN_KINDS:
        return f"{code} is a finding of the sandbox: its text and remedy are in the output."
    kind = KNOWN_KINDS[code]
    body = "\n\n".join(textwrap.fill(text, EXPLAIN_WIDTH) for text in describe_kind(kind))
    place = address_of(code, rooms[code])
    address = f"\n\n{place}" if place else ""
    return f"{code} {kind.severity.value}: {kind.title}\n\n{body}{address}"


def address_of(code: str, room: str) -> str | None:
    """The address of a finding's entry: on the site in GPUFLEET_DOCS, or in a checkout.

    None if neither exists; then `explain` has printed the whole entry.
    """
    if site := os.environ.get("GPUFLEET_DOCS"):
        return f"{site.rstrip('/')}/{FINDINGS}/{room}.html#{code.lower()}"
    page = shipped_path("docs") / FINDINGS / f"{room}.md"
    return f"{page}#{code.lower()}" if page.is_file() else None
