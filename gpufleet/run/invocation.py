"""The pyinfra command line that this process was started with."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pyinfra
from click.core import ParameterSource

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
    operations: tuple[str, ...] = ()  # the deploys, and all else that is to be run
    data: tuple[str, ...] = ()  # KEY=VALUE of --data
    given: tuple[str, ...] = ()  # names of all options on the command line, each by its longest

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
    """The invocation of this process, read by pyinfra's own parser."""
    if not pyinfra.is_cli:
        return Invocation()
    return parse(sys.argv[1:])


def parse(arguments: Sequence[str]) -> Invocation:
    """The parsed command line; arguments that pyinfra would reject are ignored."""
    # Imported here because pyinfra_cli makes gevent replace parts of the standard library.
    from pyinfra_cli.cli import cli

    context = cli.make_context("pyinfra", list(arguments), resilient_parsing=True)
    asked = context.params
    return Invocation(
        inventory=asked.get("inventory") or "",
        deploys=tuple(word for word in asked.get("operations") or () if word.endswith(".py")),
        limit=tuple(asked.get("limit") or ()),
        exclude=tuple(asked.get("exclude") or ()),
        dry=bool(asked.get("dry")),
        yes=bool(asked.get("yes")),
        options=_others(arguments, (asked.get("inventory"), *(asked.get("operations") or ()))),
        operations=tuple(asked.get("operations") or ()),
        data=tuple(asked.get("data") or ()),
        given=tuple(_given(context)),
    )


def _given(context: click.Context) -> Iterator[str]:
    for option in context.command.get_params(context):
        typed = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if typed and isinstance(option, click.Option):
            yield max(option.opts, key=len)


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
