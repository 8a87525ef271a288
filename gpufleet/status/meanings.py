"""The meaning of findings and data keys, for `gpufleet explain`."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping
from string import Formatter

from gpufleet.core.findings import KNOWN_KINDS, Kind
from gpufleet.core.paths import shipped_path
from gpufleet.core.settings import values_of
from gpufleet.gpu_stack.settings import ROLES
from gpufleet.status.explained import EXPLAIN_WIDTH, Explained

FINDINGS = "reference/findings"
CAPITALS = "Words in capitals, such as {name}, stand for the details of a case."
SANDBOX_CODES = "GF6"  # prefix of the codes of a separate distribution
_NUMBER = re.compile(r"\{(?P<name>\w+):[^{}|]*\|(?P<several>[^{}]*)\}")  # of visible.Count


def describe_keys() -> dict[str, str]:
    """Every data key: its values, default and meaning."""
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
    """The meaning and the remedy of a kind of finding, with placeholders in capitals: PATH."""
    message, remedy = map(_in_capitals, _texts(kind))
    return message, remedy


def _texts(kind: Kind) -> tuple[str, str]:
    texts = (kind.description or kind.message, kind.advice or kind.remedy)
    message, remedy = (_NUMBER.sub(r"{\g<name>} \g<several>", text) for text in texts)
    return message, remedy


def _in_capitals(text: str) -> str:
    """The text with its placeholders in capitals: {name} of {file!r} -> NAME of 'FILE'."""
    quotes = {"r": "'"}
    return "".join(
        literal + (name or "").upper().join([quotes.get(conversion or "", "")] * 2)
        for literal, name, _, conversion in Formatter().parse(text)
    )


def _placeholders(kind: Kind) -> list[str]:
    """The placeholders of both texts."""
    return [name for text in _texts(kind) for _, name, _, _ in Formatter().parse(text) if name]


def describe_finding(code: str, rooms: Mapping[str, str]) -> Explained:
    if code not in KNOWN_KINDS:
        text = f"{code} is a finding of the sandbox: its text and remedy are in the output."
        return Explained("finding", code, text)
    kind = KNOWN_KINDS[code]
    body = "\n\n".join(textwrap.fill(text, EXPLAIN_WIDTH) for text in describe_kind(kind))
    if names := _placeholders(kind):
        body += f"\n\n{CAPITALS.format(name=names[0].upper())}"
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
