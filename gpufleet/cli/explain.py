"""`gpufleet explain`: what a finding means and what to do, by its code."""

from __future__ import annotations

import importlib
import os
import re
import textwrap
from pathlib import Path
from types import ModuleType

import click

import gpufleet
from gpufleet.core.findings import KINDS, Kind

FINDINGS = "reference/findings"
SANDBOX = "GF6"  # codes of a distribution of its own
WIDTH = 80
_DIGITS = re.compile(r"\d{3}", re.ASCII)  # of a code
_NUMBER = re.compile(r"\{(?P<name>\w+):[^{}|]*\|(?P<several>[^{}]*)\}")  # of visible.Count


@click.command()
@click.argument("codes", metavar="CODE...", nargs=-1, required=True)
def explain(codes: tuple[str, ...]) -> None:
    """Explain findings by their codes, such as GF112 or 112.

    Prints what each means, what to do, and its address in the documentation. Runs replace the
    placeholders in braces.

    Exit status: 0 every code is known; 2 usage error.
    """
    finding_modules(gpufleet)
    wanted = [f"GF{code}" if _DIGITS.fullmatch(code) else code.upper() for code in codes]
    for code in wanted:
        if code not in KINDS and not code.startswith(SANDBOX):
            raise click.UsageError(
                f"No finding has the code {code}. Codes are GF and three digits."
            )
    click.echo("\n\n".join(_entry(code) for code in wanted))


def finding_modules(package: ModuleType) -> list[ModuleType]:
    """The findings of every room of a package; importing them declares them in KINDS."""
    root = Path(package.__path__[0])
    found = []
    for path in sorted({*root.rglob("findings.py"), *root.rglob("findings/*.py")}):
        parts = path.relative_to(root.parent).with_suffix("").parts
        found.append(importlib.import_module(".".join(parts).removesuffix(".__init__")))
    return found


def meaning(kind: Kind) -> tuple[str, str]:
    """What a kind of finding means, and what to do, with placeholders in braces."""
    texts = (kind.description or kind.message, kind.advice or kind.remedy)
    message, remedy = (
        _NUMBER.sub(r"{\g<name>} \g<several>", text).replace("{{", "{").replace("}}", "}")
        for text in texts
    )
    return message, remedy


def _entry(code: str) -> str:
    if code not in KINDS:
        return f"{code} is a finding of the sandbox.\n\n{address_of(code)}"
    kind = KINDS[code]
    body = "\n\n".join(textwrap.fill(text, WIDTH) for text in meaning(kind))
    return f"{code} {kind.severity.value}: {kind.title}\n\n{body}\n\n{address_of(code)}"


def address_of(code: str) -> str:
    """Where a finding is explained: on the site whose URL is in GPUFLEET_DOCS, else in gpufleet's
    repository. Both pages have a heading for each code."""
    if site := os.environ.get("GPUFLEET_DOCS"):
        return f"{site.rstrip('/')}/{FINDINGS}.html#{code.lower()}"
    return f"In gpufleet's repository: docs/{FINDINGS}.md#{code.lower()}"
