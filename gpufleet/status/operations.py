"""Reads the hosts of an inventory, with one connection and one command per host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpufleet.core.accepted import accepted_of
from gpufleet.core.findings import Finding
from gpufleet.core.findings.settings import MISSPELT_GROUP
from gpufleet.core.inventory import misspelt_cluster_group
from gpufleet.facts.model import NodeFacts
from gpufleet.host.gather import Gathered, GatherProgress, gather_facts
from gpufleet.node.settings import NodeSettings, load_node_settings
from gpufleet.status.models import SeenHost


@dataclass(frozen=True, slots=True)
class _Beside:
    """The inputs of a host's plan, besides its facts."""

    settings: NodeSettings | None
    problems: tuple[Finding, ...]
    logins: Any = None
    place: Any = None


def read_hosts(
    inventory: str, limit: Sequence[str] = (), progress: GatherProgress | None = None
) -> tuple[list[SeenHost], list[str]]:
    """The hosts and the names of the clusters. Raises the same errors as `gather_facts`."""
    found = gather_facts(inventory, limit, _read, progress)
    hosts = [_seen(each) for each in found if not each.cluster]
    return hosts, [each.name for each in found if each.cluster]


def _read(state: Any, host: Any) -> tuple[NodeFacts | Finding, Any]:
    """Facts of one host, with the files and ports that its settings name, as a run reads them."""
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
            return read_facts(host, how=how), _Beside(None, tuple(problems))
        facts = read_facts(host, further_files(settings), watched_ports(settings), how)
        if isinstance(facts, Finding):
            return facts, None
        logins, of_logins = node_logins(login_files(settings))
        place = place_in_run(state, host, settings, facts)
        known = None if of_logins else settings
        return facts, _Beside(known, tuple(of_logins), logins, place)
    except Exception as error:  # noqa: BLE001 - the boundary: one host
        return explain_error(host, error, DURING_FACTS), None


def _seen(found: Gathered) -> SeenHost:
    beside = found.beside
    own = dict.fromkeys(name for name in found.groups if not name.startswith("@"))  # not pyinfra's
    accepted = accepted_of(found.data)
    host = SeenHost(found.name, tuple(own), found.facts, found.problem, accepted=accepted)
    if not isinstance(beside, _Beside):
        return replace(host, problems=found.misspelt)
    host = replace(host, settings=beside.settings, problems=(*beside.problems, *found.misspelt))
    return (
        host if beside.logins is None else replace(host, logins=beside.logins, place=beside.place)
    )
