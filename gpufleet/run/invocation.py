"""The pyinfra command line that this process was started with."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pyinfra

from gpufleet.core.inventory import is_missing

PREFLIGHT = "preflight.py"
DETAIL = ("verbosity", "debug", "debug_all", "debug_facts", "debug_operations")  # of pyinfra


@dataclass(frozen=True, slots=True)
class Invocation:
    """pyinfra's command line, parsed; all empty where its Python API is used instead."""

    inventory: str = ""
    deploys: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    dry: bool = False
    yes: bool = False
    detail: bool = False  # pyinfra's own output is asked for

    @property
    def selection(self) -> str:
        """The options that choose hosts, as they were typed."""
        options = [("--limit", word) for word in self.limit]
        options += [("--exclude", word) for word in self.exclude]
        return " ".join(f"{option} {word}" for option, word in options)

    @property
    def previews(self) -> bool:
        """Whether only a preview is requested."""
        return {Path(word).name == PREFLIGHT for word in self.deploys} == {True}

    @property
    def mixes_preflight(self) -> bool:
        """Whether a preview and a deploy that changes hosts are requested together."""
        return len({Path(word).name == PREFLIGHT for word in self.deploys}) == 2

    @property
    def lacks_inventory(self) -> bool:
        """Whether the inventory is a file that does not exist."""
        return is_missing(self.inventory)


def read_invocation() -> Invocation:
    """The invocation of this process, read by pyinfra's own parser; arguments that it would reject
    are ignored."""
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
