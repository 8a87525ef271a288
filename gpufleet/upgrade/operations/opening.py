"""The clusters of a run that begins or goes on: the right ones, with their locks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.lease import DURATION, take_lease
from gpufleet.upgrade.findings.nodes import OTHER_CLUSTER
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.clusters import NodeAt, uid_of
from gpufleet.upgrade.operations.gpu_pod import remove_pods
from gpufleet.upgrade.operations.readable import readable

LOCK_TIMEOUT = 600  # seconds to wait for another run of gpufleet on a cluster
EXPIRY = f"that of a process which is gone is free {DURATION} s after its last sign of life"
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
    places: Places, run: str, say: Say, others: Mapping[str, Mapping[str, Any]] = NO_OTHERS
) -> dict[str, ClusterNodes]:
    """The cluster of each host, with its lock held until this process ends. `others`: NodeAt of
    the hosts that the run leaves out. Raises ClusterProblem."""
    found = {}
    for access, mine in by_access(places).items():
        api = ClusterApi(access)
        _require(api, mine, access, run)
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


@readable
def _require(api: ClusterApi, places: Places, access: KubeAccess, run: str) -> None:
    """Raises OtherCluster for another one than that of the plan, where both are known."""
    wanted = {place.cluster for place in places.values()} - {""}
    found = uid_of(api) if wanted else ""
    if found and wanted - {found}:
        paths = access.kubeconfig
        finding = OTHER_CLUSTER(context=api.context, paths=paths, url=api.url, run=run)
        raise OtherCluster(api, finding)
