"""Gathers the facts of an inventory's hosts, outside a deploy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import choose_hosts, is_missing, refuse_unprintable_names
from gpufleet.core.python import error_place
from gpufleet.core.secrets import register_secrets_of
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import printed_value
from gpufleet.facts.model import NodeFacts
from gpufleet.run.findings import INVENTORY_NOT_FOUND


@dataclass(frozen=True, slots=True)
class Gathered:
    """One host: its inventory data, and its facts or the reason why they are missing."""

    name: str
    data: dict[str, Any]
    facts: NodeFacts | None
    problem: Finding | None = None  # why facts is None
    is_cluster: bool = False  # clusters are not connected to
    misspelt: tuple[Finding, ...] = ()  # about misspelt data, which has no effect
    groups: tuple[str, ...] = ()
    beside: Any = None  # further result of `read`


Answer = tuple[NodeFacts | Finding, Any]  # facts, further result
Read = Callable[[Any, Any], Answer]  # takes pyinfra's state and host; raises nothing


class GatherProgress:
    """Receives the progress of reading hosts. This base class does nothing."""

    def began(self, hosts: int) -> None:
        """Called before this number of hosts is connected to."""

    def answered(self) -> None:
        """Called after each host that was read."""


class NoSuchHost(Exception):
    """A limit that matches no host, or leaves none. `name`: the problem, from choose_hosts."""

    def __init__(self, name: str, hosts: Sequence[str], groups: Sequence[str]) -> None:
        self.name, self.hosts, self.groups = name, hosts, groups
        super().__init__(name)


def gather_facts(
    inventory: str,
    limit: Sequence[str] = (),
    read: Read | None = None,
    progress: GatherProgress | None = None,
) -> list[Gathered]:
    """Facts of every host of `inventory`, or of the hosts and groups that `limit` names.

    `read`: reads one host; the default reads only its facts. Raises NoSuchHost, Stopped, and
    pyinfra's errors if hosts cannot be connected.
    """
    # Imported here because pyinfra_cli makes gevent replace parts of the standard library.
    from pyinfra.api import Config, State
    from pyinfra.context import ctx_inventory, ctx_state

    from gpufleet.core.inventory import is_cluster
    from gpufleet.run.connection import prepare_connections

    if is_missing(inventory):
        raise Stopped(INVENTORY_NOT_FOUND(path=inventory, why="no such file"))
    cwd = str(Path.cwd())
    if cwd not in sys.path:
        sys.path.append(cwd)  # as pyinfra's command does: inventories import their project
    config = Config()
    prepare_connections(config)
    state = State()
    ctx_state.set(state)
    hosts = _load(inventory, cwd)
    if not len(hosts):
        raise Stopped(INVENTORY_NOT_FOUND(path=inventory, why="it names no host"))
    if why := refuse_unprintable_names(host.name for host in hosts):
        raise Stopped(INVENTORY_NOT_FOUND(path=inventory, why=why))
    for host in hosts:
        register_secrets_of(host.data.dict())
    ctx_inventory.set(hosts)
    wanted = _limited(hosts, limit)
    clusters = [host for host in wanted if is_cluster(host.groups)]
    asked = [host for host in wanted if host not in clusters]
    state.init(hosts, config, initial_limit=asked)
    found = _ask(state, asked, read, progress or GatherProgress()) if asked else {}
    return [
        Gathered(host.name, host.data.dict(), None, is_cluster=True, groups=tuple(host.groups))
        if host in clusters
        else _gathered(host, found.get(host))
        for host in wanted
    ]


def _ask(
    state: Any, asked: list[Any], read: Read | None, progress: GatherProgress
) -> dict[Any, Answer]:
    """Read all reachable hosts at the same time."""
    from pyinfra.api.connect import connect_all, disconnect_all
    from pyinfra.api.exceptions import PyinfraError
    from pyinfra.api.state import StateStage

    from gpufleet.host.facts import read_facts
    from gpufleet.run.connection import hang_up

    def one(host: Any) -> Answer:
        answer = read(state, host) if read else (read_facts(host), None)
        progress.answered()
        return answer

    state.set_stage(StateStage.Connect)
    progress.began(len(asked))
    try:
        connect_all(state)
    except PyinfraError:
        if any(host.connected for host in asked):
            raise  # otherwise each host reports its own failure
    state.set_stage(StateStage.Prepare)
    try:
        answers = {host: state.pool.spawn(one, host) for host in asked if host.connected}
        return {host: greenlet.get() for host, greenlet in answers.items()}
    finally:
        disconnect_all(state)
        hang_up(asked)


def _load(inventory: str, cwd: str) -> Any:
    """pyinfra's inventory. Raises Stopped (GF701) for any error in the user's file. What the
    file prints goes to standard error: standard output may be JSON."""
    from click import ClickException
    from pyinfra_cli.inventory import make_inventory

    from gpufleet.run.host_list import refuse_ignored_groups

    refuse_ignored_groups()
    try:
        with redirect_stdout(sys.stderr):
            return make_inventory(inventory, cwd=cwd)
    except (Exception, SystemExit) as error:
        cause = getattr(error, "exception", error)  # pyinfra wraps it
        place = "" if isinstance(cause, SyntaxError) else error_place(cause)  # its text has it
        why = f"{type(cause).__name__}: {printed_value(cause, str)}{place}"
        if isinstance(cause, ClickException):
            why = cause.message
        elif isinstance(cause, SystemExit) and isinstance(cause.code, str):
            why = cause.code  # the inventory's own words
        raise Stopped(INVENTORY_NOT_FOUND(path=inventory, why=why)) from error


def _limited(hosts: Any, limit: Sequence[str]) -> list[Any]:
    try:
        names = choose_hosts({host.name: host.groups for host in hosts}, limit)
    except LookupError as error:
        groups = [group for host in hosts for group in host.groups]
        wrong = str(error.args[0])
        raise NoSuchHost(wrong, [host.name for host in hosts], groups) from error
    return [host for host in hosts if host.name in names]


def _gathered(host: Any, known: Answer | None) -> Gathered:
    from gpufleet.run.connection import explain_unreached
    from gpufleet.run.near_misses import find_misspelt_keys

    answer, beside = known or (explain_unreached(host), None)
    facts, problem = (answer, None) if isinstance(answer, NodeFacts) else (None, answer)
    return Gathered(
        host.name,
        host.data.dict(),
        facts,
        problem,
        misspelt=tuple(find_misspelt_keys(host)),
        groups=tuple(host.groups),
        beside=beside,
    )
