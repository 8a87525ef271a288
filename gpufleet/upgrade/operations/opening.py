"""The clusters of a run that begins or goes on: the right ones, with their locks."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.kube.findings import CONTEXT_UNKNOWN, KUBECONFIG_MISSING
from gpufleet.kube.kubeconfig import kubeconfig_paths
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.lease import DURATION, take_lease
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.findings.nodes import (
    CONTEXT_LOST,
    MAYBE_AWAY,
    OTHER_CLUSTER,
    UID_REFUSED,
    UID_UNKNOWN,
)
from gpufleet.upgrade.operations.check import remove_pods
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.clusters import FORBIDDEN, NodeAt
from gpufleet.upgrade.operations.moved import Elsewhere, described, listed, search, uid_at
from gpufleet.upgrade.operations.readable import readable

LOCK_TIMEOUT = 600  # seconds to wait for another run of gpufleet on a cluster
EXPIRY = f"a dead process's lock expires after {DURATION} s"
LOST = (KUBECONFIG_MISSING.code, CONTEXT_UNKNOWN.code)
ANOTHER = (OTHER_CLUSTER.code, UID_REFUSED.code)
NO_OTHERS: Mapping[str, Mapping[str, Any]] = {}

Places = Mapping[str, NodeAt]
Say = Callable[[str], None]


class NotOpened(ClusterProblem):
    """The cluster of the plan is not reached."""


def by_access(places: Places) -> dict[KubeAccess, dict[str, NodeAt]]:
    """The nodes of each cluster."""
    found: dict[KubeAccess, dict[str, NodeAt]] = {}
    for host, place in places.items():
        found.setdefault(place.access, {})[host] = place
    return found


def open_nodes(
    places: Places,
    run: str,
    say: Say,
    others: Mapping[str, Mapping[str, Any]] = NO_OTHERS,
    elsewhere: Elsewhere = tuple,
) -> dict[str, ClusterNodes]:
    """The cluster of each host, with its lock held until this process ends. `others`: NodeAt of
    the hosts that the run leaves out; `elsewhere`: where a cluster may be that is not where it was.
    Raises ClusterProblem."""
    found: dict[str, ClusterNodes] = {}
    for access, mine in by_access(places).items():
        left = [place["node"] for place in others.values() if NodeAt(**place).access == access]
        found |= _nodes_at(access, mine, run, say, left, elsewhere)
    return found


@readable
def _nodes_at(
    access: KubeAccess, mine: Places, run: str, say: Say, left: list[str], elsewhere: Elsewhere
) -> dict[str, ClusterNodes]:
    """Those of one cluster. `left`: its nodes that the run leaves out."""
    api = _locked(access, _opened(access, mine, run, elsewhere), say)
    remove_pods(api)
    machines = {host: place.machine for host, place in mine.items()}
    offering = [host for host, place in mine.items() if place.offers]
    nodes = {host: place.node for host, place in mine.items()}
    cluster = ClusterNodes(api, run, nodes, left, machines=machines, offering=offering)
    return dict.fromkeys(nodes, cluster)


def _locked(access: KubeAccess, ways: Sequence[ClusterApi], say: Say) -> ClusterApi:
    """The cluster with its lock, by the first of these ways whose user may take it; the others are
    closed. Raises ClusterProblem."""
    refused = list[ApiError]()
    for api in ways:
        if access.context and api.context != access.context:
            say(f"cluster of context {access.context} is reached by context {api.context} now")
        say(f"taking the lock of cluster {api.context}; {EXPIRY}")
        try:
            take_lease(api, LOCK_TIMEOUT, say)
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            refused.append(error)
            api.close()
        else:
            for other in ways[len(refused) + 1 :]:
                other.close()
            return api
    raise refused[0]


def _opened(access: KubeAccess, places: Places, run: str, elsewhere: Elsewhere) -> list[ClusterApi]:
    """The ways to the cluster of the plan, also where its kubeconfig was moved or its context
    renamed: by its UID. Raises NotOpened."""
    wanted = {place.cluster for place in places.values()} - {""}
    problem = _asked(access, wanted, run)
    if not isinstance(problem, Finding):
        return [problem]
    if problem.code not in (*LOST, *ANOTHER):
        raise NotOpened(problem)
    is_other, where = problem.code in ANOTHER, described(access)
    (uid, *more) = wanted or ("",)
    if more or not uid:
        unknown = UID_UNKNOWN(run=run, access=where, problem=problem.message)
        raise NotOpened(problem if is_other else unknown)
    found = search(access, uid, elsewhere)
    if found.apis:
        return found.apis
    if not is_other:
        lost = CONTEXT_LOST(run=run, access=where, problem=problem.message, tried=found.tried)
        raise NotOpened(lost)
    if found.unknown:
        tried = listed(found.unknown)
        raise NotOpened(MAYBE_AWAY(run=run, problem=problem.message, tried=tried))
    raise NotOpened(problem)


def _asked(access: KubeAccess, wanted: Collection[str], run: str) -> ClusterApi | Finding:
    """The cluster there, or why it is not taken: it is another one than that of the run, or may be
    where the run knows the UID and its user may not read it."""
    api: ClusterApi | None = None
    try:
        api = ClusterApi(access)
        found = uid_at(api)
        if not wanted or wanted == {found}:
            return api
        paths = kubeconfig_paths(access.kubeconfig).replace(os.pathsep, ", ")
        kind = OTHER_CLUSTER if found else UID_REFUSED
        problem = kind(context=api.context, paths=paths, url=api.url, run=run)
    except ClusterProblem as error:
        problem = error.findings[0]
    if api:
        api.close()
    return problem
