"""Reads the hosts of an inventory, with one connection and one command per host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gpufleet.core.accepted import accepted_of
from gpufleet.core.findings import Finding
from gpufleet.core.findings.settings import MISSPELT_GROUP
from gpufleet.core.inventory import misspelt_cluster_group
from gpufleet.core.secrets import hide_secrets, is_secret_key, plain_urls
from gpufleet.facts.model import NodeFacts
from gpufleet.host.gather import Gathered, GatherProgress, gather_facts
from gpufleet.node.settings import load_node_settings
from gpufleet.status.models import SeenHost

ReadBefore = Callable[[Any], None]  # takes pyinfra's host; raises nothing
ReadMore = Callable[[Any, NodeFacts | Finding], None]  # takes pyinfra's host; raises nothing


def read_hosts(
    inventory: str,
    limit: Sequence[str],
    progress: GatherProgress,
    *,
    health: bool = False,
    before: ReadBefore | None = None,
    more: ReadMore | None = None,
) -> tuple[list[SeenHost], list[Gathered]]:
    """The hosts, and the clusters with their data. Raises the same errors as `gather_facts`.

    `health`: read the health of the GPUs, too. `before`: called for each connected host before it
    is read; `more`: called with its facts, to read more over the same connection."""
    read = partial(_read, health=health, before=before, more=more)
    found = gather_facts(inventory, limit, read, progress)
    hosts = [_seen(each) for each in found if not each.is_cluster]
    return hosts, [each for each in found if each.is_cluster]


def _read(
    state: Any, host: Any, *, health: bool, before: ReadBefore | None, more: ReadMore | None
) -> tuple[NodeFacts | Finding, SeenHost | None]:
    """Read a host with `_read_inputs`, between `before` and `more`."""
    if before:
        before(host)
    answer = _read_inputs(state, host, health=health)
    if more:
        more(host, answer[0])
    return answer


def _read_inputs(
    state: Any, host: Any, *, health: bool
) -> tuple[NodeFacts | Finding, SeenHost | None]:
    """Facts of one host, with the files and ports that its settings name, as a run reads them, and
    the other inputs of its plan."""
    # Imported here because pyinfra makes gevent replace parts of the standard library.
    from gpufleet.host.asking import host_arguments
    from gpufleet.host.facts import DURING_FACTS, read_facts
    from gpufleet.host.trouble import explain_error
    from gpufleet.node.operations.node import (
        further_files,
        login_files,
        unfit_password,
        watched_ports,
    )
    from gpufleet.node.operations.place import place_in_run
    from gpufleet.packages.operations.logins import node_logins

    try:
        data = host.data.dict()
        settings, problems = load_node_settings(data)
        if meant := misspelt_cluster_group(host.groups, data):
            problems = [*problems, MISSPELT_GROUP(name=meant)]
        how = host_arguments(host)
        if unfit := unfit_password(how):
            return unfit, None
        if settings is None or problems:
            unusable = SeenHost(host.name, problems=tuple(problems))
            return read_facts(host, how=how, health=health), unusable
        paths, ports = further_files(settings), watched_ports(settings)
        facts = read_facts(host, paths, ports, how, health=health)
        if isinstance(facts, Finding):
            return facts, None
        logins, of_logins = node_logins(login_files(settings))
        inputs = SeenHost(
            host.name,
            settings=None if of_logins else settings,
            problems=tuple(of_logins),
            logins=logins,
            place=place_in_run(state, host, settings, facts),
        )
        return facts, inputs
    except Exception as error:  # noqa: BLE001 - the boundary: one host
        return explain_error(host, error, DURING_FACTS), None


def _seen(found: Gathered) -> SeenHost:
    own = dict.fromkeys(name for name in found.groups if not name.startswith("@"))  # not pyinfra's
    inputs: SeenHost = found.beside or SeenHost(found.name)
    return replace(
        inputs,
        groups=tuple(own),
        facts=found.facts,
        problem=found.problem,
        problems=(*inputs.problems, *found.misspelt),
        accepted=accepted_of(found.data),
        data=keep_plain_data(found.data),
    )


def keep_plain_data(data: Mapping[str, Any]) -> dict[str, str]:
    """The data of a host by which hosts may be grouped: texts and numbers, and no secrets.

    {"rack": 7, "ssh_password": "x"} -> {"rack": "7"}
    """
    return {
        key: hide_secrets(plain_urls(str(value)))
        for key, value in data.items()
        if isinstance(value, str | int | float) and not is_secret_key(key)
    }
