"""How the clusters of an inventory are reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CLUSTERS, ListedHost, kubeconfig_of
from gpufleet.core.load_settings import load_role
from gpufleet.core.paths import expand_user_path
from gpufleet.core.stopped import Stopped
from gpufleet.gpu_stack.model import our_releases
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.operations.cluster import RunCluster, open_cluster
from gpufleet.helm.settings import ClusterAccess
from gpufleet.kube.operations.access import KubeAccess

ACCESS_KEYS = ("cluster_kubeconfig", "cluster_context")


def accesses_of(targets: Sequence[ListedHost]) -> list[KubeAccess]:
    """The clusters of the inventory: those of its group gpu_cluster, by default the one in the
    user's own kubeconfig, and that of its control plane. Raises Stopped for values of a wrong
    type."""
    found = {access_of(target) for target in targets if CLUSTERS in target.groups}
    if plane := kubeconfig_of(targets):
        found.add(KubeAccess(str(expand_user_path(plane))))
    return sorted(found, key=lambda access: (access.kubeconfig, access.context))


def access_of(target: ListedHost) -> KubeAccess:
    """Kubeconfig and context of a cluster, "" for the user's own. Raises Stopped."""
    problems: list[Finding] = []
    mine = {key: value for key, value in target.data.items() if key in ACCESS_KEYS}
    settings = load_role(ClusterAccess, mine, problems)
    if settings is None:
        raise Stopped(*problems)
    path = settings.kubeconfig and str(expand_user_path(settings.kubeconfig))
    return KubeAccess(path or "", settings.context or "")


def open_stack_cluster(name: str, settings: ClusterSettings, **how: Any) -> RunCluster:
    """Read the cluster that these settings name, without its lock unless `how`, the further
    arguments of `open_cluster`, has `wait`. Raises ClusterProblem."""
    wanted = settings.cluster
    return open_cluster(
        name,
        KubeAccess(wanted.kubeconfig or "", wanted.context or ""),
        our_releases(settings),
        helm=wanted.helm or "",
        helm_site=wanted.helm_url or "",
        uid=wanted.uid or "",
        **{"supported_only": True, "wait": None, **how},
    )
