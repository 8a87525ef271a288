"""The clusters of a run that begins or goes on: the right ones, with their locks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.kube.findings import CONTEXT_UNKNOWN, KUBECONFIG_MISSING
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.lease import DURATION, take_lease
from gpufleet.upgrade.findings.nodes import CONTEXT_LOST, OTHER_CLUSTER
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.clusters import NodeAt, uid_of
from gpufleet.upgrade.operations.gpu_pod import remove_pods
from gpufleet.upgrade.operations.readable import readable

LOCK_TIMEOUT = 600  # seconds to wait for another run of gpufleet on a cluster
EXPIRY = f"that of a process which is gone is free {DURATION} s after its last sign of life"
LOST = (KUBECONFIG_MISSING.code, CONTEXT_UNKNOWN.code)
TRIED = "Neither the current context of KUBECONFIG nor the inventory leads to that cluster."
UNTRIED = "No other one was tried: the UID of the cluster is not known."
NO_OTHERS: Mapping[str, Mapping[str, Any]] = {}

Places = Mapping[str, NodeAt]
Say = Callable[[str], None]


class OtherCluster(ClusterProblem):
    """Not the cluster that the run was planned for."""

    def __init__(self, api: ClusterApi, finding: Finding) -> None:
        super().__init__(finding)
        self.api = api


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
    elsewhere: Callable[[], Sequence[KubeAccess]] = tuple,
) -> dict[str, ClusterNodes]:
    """The cluster of each host, with its lock held until this process ends. `others`: NodeAt of
    the hosts that the run leaves out; `elsewhere`: where a cluster may be that is not where it was.
    Raises ClusterProblem."""
    found = {}
    for access, mine in by_access(places).items():
        api = _opened(access, mine, run, say, elsewhere)
        say(f"taking the lock of cluster {api.context}; {EXPIRY}")
        take_lease(api, LOCK_TIMEOUT, say)
        remove_pods(api)
        left = [place["node"] for place in others.values() if NodeAt(**place).access == access]
        machines = {host: place.machine for host, place in mine.items()}
        offering = [host for host, place in mine.items() if place.offers]
        nodes = {host: place.node for host, place in mine.items()}
        cluster = ClusterNodes(api, run, nodes, left, machines=machines, offering=offering)
        found.update(dict.fromkeys(nodes, cluster))
    return found


def _opened(
    access: KubeAccess,
    places: Places,
    run: str,
    say: Say,
    elsewhere: Callable[[], Sequence[KubeAccess]],
) -> ClusterApi:
    """The cluster of the plan, also where its kubeconfig was moved or its context renamed: by its
    UID. Raises ClusterProblem."""
    try:
        api = ClusterApi(access)
        _require(api, places, access, run)
        return api
    except ClusterProblem as error:
        problem = error.findings[0]
        if not isinstance(error, OtherCluster) and problem.code not in LOST:
            raise
        if found := _moved(access, _uids(places), elsewhere()):
            say(f"cluster of context {access.context} is reached by context {found.context} now")
            return found
        if isinstance(error, OtherCluster):
            raise
        paths, context = access.kubeconfig, access.context
        lost = CONTEXT_LOST(
            run=run, context=context, paths=paths, problem=problem.message,
            tried=TRIED if len(_uids(places)) == 1 else UNTRIED,
        )  # fmt: skip
        raise ClusterProblem(lost) from error


def _moved(
    access: KubeAccess, wanted: Collection[str], elsewhere: Sequence[KubeAccess]
) -> ClusterApi | None:
    """The cluster with the UID of the plan; None where none of these has it."""
    mine = (KubeAccess(access.kubeconfig), KubeAccess(context=access.context))
    for other in dict.fromkeys((*mine, *elsewhere)) if len(wanted) == 1 else ():
        try:
            api = ClusterApi(other)
            if _uid(api) in wanted:
                return api
            api.close()
        except ClusterProblem:  # it is one of many
            continue
    return None


def _uids(places: Places) -> set[str]:
    return {place.cluster for place in places.values()} - {""}


@readable
def _uid(api: ClusterApi) -> str:
    return uid_of(api)


@readable
def _require(api: ClusterApi, places: Places, access: KubeAccess, run: str) -> None:
    """Raises OtherCluster for another one than that of the plan, where both are known."""
    wanted = _uids(places)
    found = uid_of(api) if wanted else ""
    if found and wanted - {found}:
        paths = access.kubeconfig
        finding = OTHER_CLUSTER(context=api.context, paths=paths, url=api.url, run=run)
        raise OtherCluster(api, finding)
