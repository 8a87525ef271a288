"""A run that is asked for in parts: its hosts and options, and what no run in parts can be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from gpufleet.cli.deploy import CONFIG, Place
from gpufleet.cli.workers import Order
from gpufleet.core.inventory import CLUSTERS, CONTROL_PLANE
from gpufleet.run.shards import Shard
from gpufleet.verify.inventory import Target

LEAVE_OUT = "Leave out --workers and --scheduler."
PERCENT = "--fail-percent"
BUDGET = "FAIL_PERCENT"  # the same in pyinfra's config.py
NAMES = "choose hosts with --limit before --"
OUTPUT = "the output of several workers is in a file each, which is kept where a host fails"
PROMPT = "workers cannot ask"
PRINTS = "it prints something and runs nothing; give it to pyinfra"
REFUSED = {
    "--limit": NAMES,
    "--exclude": NAMES,
    "--chdir": "start gpufleet in that folder",
    "--serial": "several workers run at a time",
    "--diff": OUTPUT,
    "--json": OUTPUT,
    "--same-sudo-password": PROMPT,
    "--ssh-password-prompt": PROMPT,
    **dict.fromkeys(("--support", "--version", "--help", "-h"), PRINTS),
}
DETAIL = re.compile(r"-y*v[vy]*|--debug(?:-\w+)?")


@dataclass(frozen=True, slots=True)
class Request:
    """A run: its inventory, the hosts and clusters that a limit left of it, pyinfra's options."""

    inventory: str
    targets: tuple[Target, ...]
    options: tuple[str, ...]
    place: Place
    percent: int | None = None  # of the hosts that may fail

    def order(self, shard: Shard, deploys: Sequence[str], logs: Path) -> Order:
        """`logs`: the folder for what the worker prints."""
        words = (self.inventory, tuple(deploys), self.options)
        return Order(shard, *words, folder=str(Path.cwd()), log=str(logs / str(shard.number)))


def is_apart(target: Target) -> bool:
    """Whether it is run on here: a cluster, or what SSH does not reach. Only this machine has the
    way to them."""
    return CLUSTERS in target.groups or not is_ssh(target.name)


def is_ssh(name: str) -> bool:
    """Whether pyinfra reaches a host of that name over SSH: not `@local` and `@docker/a`."""
    return not name.startswith("@") or name.startswith("@ssh/")


def request_of(
    inventory: str,
    every: Sequence[Target],
    chosen: Sequence[Target],
    options: Sequence[str],
    place: Place,
) -> Request:
    """`every`: the hosts of the inventory; `chosen`: those of the limit. Raises click.UsageError
    for what cannot be run in parts."""
    _refuse_options(options)
    _refuse_joins(every)
    left, value = _taken(options, PERCENT)
    if value is None:
        _refuse_budget(_taken(options, "--config")[1] or CONFIG)
        return Request(inventory, tuple(chosen), left, place)
    if not value.isdecimal():
        raise click.UsageError(f"{PERCENT} {value} is not a number.")
    # of the hosts of one worker any number may fail, whatever config.py says: all are counted here
    return Request(inventory, tuple(chosen), (*left, PERCENT, "100"), place, int(value))


def _refuse_options(options: Sequence[str]) -> None:
    for word in options:
        option = word.partition("=")[0]
        if why := OUTPUT if DETAIL.fullmatch(option) else REFUSED.get(option):
            raise click.UsageError(f"{option} is not possible with workers: {why}. {LEAVE_OUT}")


def _refuse_joins(every: Sequence[Target]) -> None:
    if any(CONTROL_PLANE in target.groups for target in every):
        raise click.UsageError(
            f"The inventory has a group {CONTROL_PLANE}: its nodes join in one run. {LEAVE_OUT}"
        )


def _refuse_budget(config: str) -> None:
    path = Path(config)
    if path.is_file() and BUDGET in path.read_text("utf-8", "replace"):
        raise click.UsageError(
            f"{path} has {BUDGET}, which would count within each part of the hosts: name it for "
            f"all of them, as -- {PERCENT} 10."
        )


def _taken(options: Sequence[str], name: str) -> tuple[tuple[str, ...], str | None]:
    """Options of pyinfra without one of them, and its last value."""
    left, found = list[str](), None
    words = iter(options)
    for word in words:
        option, equals, value = word.partition("=")
        if option == name:
            found = value if equals else next(words, "")
        else:
            left.append(word)
    return tuple(left), found
