"""The clusters to render: read over their API, or from saved facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from gpufleet.core.versions import version_tuple
from gpufleet.gitops.facts_file import FactsFileError, parse_facts
from gpufleet.gitops.findings import NO_SAVED_FACTS
from gpufleet.gitops.plan import ClusterFiles, plan_files
from gpufleet.gitops.releases import Style
from gpufleet.gpu_stack.node_sharing import HostData
from gpufleet.gpu_stack.operations.accesses import open_stack_cluster
from gpufleet.gpu_stack.settings import ClusterSettings, load_cluster_settings
from gpufleet.helm.plan import Controller, plan_release
from gpufleet.helm.release import HelmVersion, Release, ReleasePlan
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.operations.access import ClusterProblem


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """A cluster's facts. `judge`: plans one of its releases, as a run does."""

    facts: ClusterFacts
    judge: Callable[[Release], ReleasePlan]


@dataclass(frozen=True, slots=True)
class SavedFacts:
    """A facts file. `clusters`: name -> facts."""

    path: str
    clusters: Mapping[str, ClusterFacts]


def read_saved(path: str) -> SavedFacts:
    """Read a facts file. Raises FactsFileError."""
    try:
        text = Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise FactsFileError(getattr(error, "strerror", None) or "it is not text") from error
    return SavedFacts(path, parse_facts(text))


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What to render. `data`: of the inventory's GPU nodes, by name. `style`: None for facts only.
    `saved`: facts to use instead of the clusters'."""

    data: HostData
    style: Style | None
    saved: SavedFacts | None
    today: date


def render_cluster(
    name: str, data: Mapping[str, Any], asked: RenderRequest
) -> tuple[ClusterFiles, ClusterFacts | None]:
    """The files of a cluster, with every blocker as a finding; and its facts, None if unknown.
    `data`: of the cluster in the inventory."""
    settings, problems = load_cluster_settings(data)
    if settings is None:
        return ClusterFiles({}, tuple(problems)), None
    try:
        known = _read_known(name, settings, asked.saved)
    except ClusterProblem as problem:
        return ClusterFiles({}, problem.findings), None
    if asked.style is None:
        return ClusterFiles({}, ()), known.facts
    files = plan_files(
        name, settings, known.facts, asked.data, asked.style, known.judge, asked.today
    )
    return files, known.facts


def _read_known(name: str, settings: ClusterSettings, saved: SavedFacts | None) -> KnownCluster:
    """Read a cluster as a plan does, without its lock, or use saved facts. Raises
    ClusterProblem."""
    if saved and name not in saved.clusters:
        raise ClusterProblem(NO_SAVED_FACTS(path=saved.path, name=name))
    if saved:
        return _saved_cluster(saved.clusters[name])
    cluster = open_stack_cluster(name, settings)
    return KnownCluster(cluster.facts, cluster.plan)


def _saved_cluster(facts: ClusterFacts) -> KnownCluster:
    """A cluster of a facts file. Its releases are planned without their charts, which helm reads
    for a cluster that it can reach."""
    catalog = helm_catalog()
    unused = Controller("", 0, HelmVersion(*version_tuple(catalog.oldest.version)[:2]))
    return KnownCluster(facts, lambda release: plan_release(release, facts, unused, catalog))
