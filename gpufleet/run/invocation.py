"""The pyinfra command line that this process was started with."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyinfra

from gpufleet.core.inventory import is_missing

PREFLIGHT = "preflight.py"
TAKEN = ("--limit", "--exclude", "--chdir")  # options with a value that have a field; a folder
JOINED = tuple(f"{option}=" for option in TAKEN)  # that was changed to is the working directory
FLAGS = ("-y", "--yes", "--dry")


@dataclass(frozen=True, slots=True)
class Invocation:
    """pyinfra's command line, parsed; all empty where its Python API is used instead."""

    inventory: str = ""
    deploys: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    dry: bool = False
    yes: bool = False
    options: tuple[str, ...] = ()  # all others, as they were typed

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
    arguments = sys.argv[1:]
    # Imported here because pyinfra_cli makes gevent replace parts of the standard library.
    from pyinfra_cli.cli import cli

    asked = cli.make_context("pyinfra", list(arguments), resilient_parsing=True).params
    return Invocation(
        inventory=asked.get("inventory") or "",
        deploys=tuple(word for word in asked.get("operations") or () if word.endswith(".py")),
        limit=tuple(asked.get("limit") or ()),
        exclude=tuple(asked.get("exclude") or ()),
        dry=bool(asked.get("dry")),
        yes=bool(asked.get("yes")),
        options=_others(arguments, (asked.get("inventory"), *(asked.get("operations") or ()))),
    )


def _others(arguments: Sequence[str], named: Sequence[str | None]) -> tuple[str, ...]:
    """The arguments without the inventory, the operations and the options that have a field."""
    found: list[str] = []
    left = iter(arguments)
    for word in left:
        if word in TAKEN:
            next(left, None)
        elif word not in named and word not in FLAGS and not word.startswith(JOINED):
            found.append(word)
    return tuple(found)
