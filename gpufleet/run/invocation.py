"""The pyinfra command line of this process."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pyinfra

PREFLIGHT = "preflight.py"
DETAIL = ("verbosity", "debug", "debug_all", "debug_facts", "debug_operations")  # of pyinfra


@dataclass(frozen=True, slots=True)
class Invocation:
    """pyinfra's command line, parsed. It is empty if pyinfra's Python API is used instead."""

    inventory: str = ""
    deploys: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    dry: bool = False
    yes: bool = False
    detail: bool = False  # the user wants pyinfra's own output

    @property
    def selection(self) -> str:
        """The options that choose hosts, as the user typed them."""
        options = [f"--limit {word}" for word in self.limit]
        return " ".join([*options, *(f"--exclude {word}" for word in self.exclude)])

    @property
    def previews(self) -> bool:
        """True if only a preview is requested."""
        return {Path(word).name == PREFLIGHT for word in self.deploys} == {True}

    @property
    def mixes_preflight(self) -> bool:
        """True if a preview and a deploy that changes hosts are requested together."""
        return len({Path(word).name == PREFLIGHT for word in self.deploys}) == 2


def read_invocation() -> Invocation:
    """The invocation of this process, parsed by pyinfra. Arguments that pyinfra would reject are
    ignored."""
    if not pyinfra.is_cli:
        return Invocation()
    # Imported here because pyinfra_cli makes gevent replace parts of the standard library.
    from pyinfra_cli.cli import cli

    asked = cli.make_context("pyinfra", sys.argv[1:], resilient_parsing=True).params
    return Invocation(
        inventory=asked.get("inventory") or "",
        deploys=tuple(word for word in asked.get("operations") or () if word.endswith(".py")),
        limit=tuple(asked.get("limit") or ()),
        exclude=tuple(asked.get("exclude") or ()),
        dry=bool(asked.get("dry")),
        yes=bool(asked.get("yes")),
        detail=any(map(asked.get, DETAIL)),
    )
