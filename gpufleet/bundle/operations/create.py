"""Collects what the plans of hosts and clusters need. Both are only read."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpufleet.bundle.images import rendered_images
from gpufleet.bundle.models import CHARTS, BundleFile, BundlePart, merge_parts
from gpufleet.bundle.new_cluster import gpu_images, is_new, new_cluster_facts
from gpufleet.bundle.operations.images import copy_images
from gpufleet.bundle.operations.store import FOLDER_VARIABLE, file_digest, store_path
from gpufleet.bundle.operations.tools import store_helm, store_wheels
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CLUSTERS, NODES_GROUP, ListedHost
from gpufleet.core.names import group_by_thing
from gpufleet.core.process import run_in_front
from gpufleet.core.secrets import plain_urls
from gpufleet.gpu_stack.model import node_names
from gpufleet.gpu_stack.node_sharing import HostData
from gpufleet.gpu_stack.operations.accesses import open_stack_cluster
from gpufleet.gpu_stack.plan import plan_stack
from gpufleet.gpu_stack.settings import ClusterSettings, load_cluster_settings
from gpufleet.helm.chart_choice import load_charts
from gpufleet.helm.obstacles import apis_of
from gpufleet.helm.operations.calls import Helm
from gpufleet.helm.operations.charts import chart_archive, read_chart
from gpufleet.helm.operations.cluster import controller_id, helm_cache, render_release
from gpufleet.helm.operations.program import find_helm
from gpufleet.helm.release import Release
from gpufleet.helm.strategy import helm_catalog
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.kubeconfig import Kubeconfig
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.node.catalog import load_catalog
from gpufleet.run.report import BAD_STATUSES, HostReport
from gpufleet.run.report_file import hosts_of_report, report_of_process

Stops = dict[Finding, tuple[str, ...]]  # why hosts and clusters were stopped, with their names


def collect_packages(command: Sequence[str], folder: Path) -> tuple[int, Stops]:
    """Collect the packages of hosts in the folder, with pyinfra's command for the deploy `bundle`.
    Returns an exit status, and why hosts were stopped."""
    with report_of_process() as (report, environment), tempfile.TemporaryFile("w+") as table:
        environment[FOLDER_VARIABLE] = str(folder.absolute())
        # the table is one of a plan, which says nothing about a bundle
        status = run_in_front(command, environment, table)
        hosts = hosts_of_report(report) or {}
    parts = [HostReport.from_dict(name, data) for name, data in hosts.items()]
    stopped = [part for part in parts if part.status in BAD_STATUSES]
    found = group_by_thing((part.name, each) for part in stopped for each in part.findings)
    return status or (ExitStatus.FAILED if stopped else ExitStatus.CONVERGED), found


def collect_from_clusters(
    targets: Sequence[ListedHost], chosen: Sequence[ListedHost], folder: Path
) -> tuple[list[BundlePart], Stops]:
    """The charts and images that runs would install on the chosen clusters of the inventory, helm
    and gpufleet's wheels; and why clusters have no plan. Raises Stopped."""
    hosts = {target.name: target.data for target in targets if NODES_GROUP in target.groups}
    parts, stops = [store_wheels(folder)], []
    for target in chosen:
        if CLUSTERS in target.groups:
            try:
                parts.append(_of_cluster(target, targets, hosts, folder))
            except ClusterProblem as problem:
                stops += [(target.name, found) for found in problem.findings]
    return parts, group_by_thing(stops)


def _of_cluster(
    target: ListedHost, targets: Sequence[ListedHost], hosts: HostData, folder: Path
) -> BundlePart:
    """The part of one cluster. Raises ClusterProblem, Stopped."""
    settings, problems = load_cluster_settings(target.data)
    if settings is None:
        raise ClusterProblem(*problems)
    view = _new_cluster(targets, settings) if is_new(targets, settings) else _live(target, settings)
    facts = replace(view.facts, gpu_pods={})  # a bundle moves no node, so none must be idle
    plan = plan_stack(settings, facts, load_charts(), node_names(hosts), hosts)
    if plan.blockers:
        raise ClusterProblem(*plan.blockers)
    parts = [_of_release(view, each, folder) for each in plan.releases]
    parts.append(copy_images(folder, gpu_images(target.data, hosts.values())))
    if not settings.cluster.helm:
        parts.append(store_helm(folder, settings.cluster.helm_url or ""))
    return merge_parts(parts)


@dataclass(slots=True)
class _ClusterView:
    """What rendering needs of a cluster. `added_apis`: by the CRDs of releases so far."""

    helm: Helm
    facts: ClusterFacts
    added_apis: set[str] = field(default_factory=set)


def _live(target: ListedHost, settings: ClusterSettings) -> _ClusterView:
    """A cluster that exists. Raises ClusterProblem."""
    cluster = open_stack_cluster(target.name, settings)
    return _ClusterView(cluster.helm, cluster.facts)


def _new_cluster(targets: Sequence[ListedHost], settings: ClusterSettings) -> _ClusterView:
    """The cluster that `cluster create` will make. Raises ClusterProblem."""
    facts, problems = new_cluster_facts(targets, load_charts(), load_catalog().kubernetes)
    if facts is None:
        raise ClusterProblem(*problems)
    wanted = settings.cluster
    program = find_helm(wanted.helm or "", helm_catalog(), helm_cache(), wanted.helm_url or "")
    return _ClusterView(Helm(program, Kubeconfig("", {}), controller_id()), facts)


def _of_release(view: _ClusterView, release: Release, folder: Path) -> BundlePart:
    """The chart of a release, and the images of its objects. Raises ClusterProblem, Stopped."""
    archive = chart_archive(release, view.helm, helm_cache())
    content = read_chart(archive, release)
    crds = content.all_crds(release.values)
    view.added_apis |= {api for crd in crds for api in apis_of(crd)}
    images = rendered_images(
        render_release(view.helm, view.facts, view.added_apis, release, archive)
    )
    chart = _chart_file(release, archive)
    store_path(folder, chart, archive)
    return merge_parts([BundlePart((chart,)), copy_images(folder, images)])


def _chart_file(release: Release, archive: Path) -> BundleFile:
    """The place of a chart: as cluster_chart_dir expects it."""
    location = release.source.location
    source = "" if release.source.kind == "archive" else plain_urls(location)
    return BundleFile(
        f"{CHARTS}/{release.chart}-{release.version}.tgz",
        file_digest(archive),
        archive.stat().st_size,
        source,
        "chart",
        release.chart,
        release.version,
    )
