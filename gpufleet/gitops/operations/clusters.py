"""The clusters to render: read over their API, or from saved facts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpufleet.core.versions import version_tuple
from gpufleet.gpu_stack.model import our_releases
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.operations.cluster import open_cluster
from gpufleet.helm.plan import Controller, plan_release
from gpufleet.helm.release import HelmVersion, Release, ReleasePlan
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.operations.access import KubeAccess


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """A cluster's facts. `judge`: plans one of its releases, as a run does."""

    facts: ClusterFacts
    judge: Callable[[Release], ReleasePlan]


def read_known_cluster(name: str, settings: ClusterSettings) -> KnownCluster:
    """Read a cluster as a plan does, without its lock. Raises ClusterProblem."""
    wanted = settings.cluster
    cluster = open_cluster(
        name,
        KubeAccess(wanted.kubeconfig or "", wanted.context or ""),
        our_releases(settings),
        helm=wanted.helm or "",
        helm_site=wanted.helm_url or "",
        supported_only=True,
        uid=wanted.uid or "",
        wait=None,
    )
    return KnownCluster(cluster.facts, lambda release: cluster.plan(release).plan)


def saved_cluster(facts: ClusterFacts) -> KnownCluster:
    """A cluster of a facts file. Its releases are planned without their charts, which helm reads
    for a cluster that it can reach."""
    catalog = helm_catalog()
    unused = Controller("", 0, HelmVersion(*version_tuple(catalog.oldest.version)[:2]))
    return KnownCluster(facts, lambda release: plan_release(release, facts, unused, catalog))
