"""Collects what the plans of hosts and clusters need. Both are only read."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpufleet.bundle.images import rendered_images
from gpufleet.bundle.models import BundleFile, BundlePart, merge_parts
from gpufleet.bundle.operations.images import copy_images
from gpufleet.bundle.operations.store import FOLDER_VARIABLE, file_digest, has_file, store_file
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.findings import Finding
from gpufleet.core.names import group_by_thing
from gpufleet.core.process import run_in_front
from gpufleet.core.secrets import plain_urls
from gpufleet.gpu_stack.model import node_names
from gpufleet.gpu_stack.node_sharing import HostData
from gpufleet.gpu_stack.operations.accesses import open_stack_cluster
from gpufleet.gpu_stack.plan import plan_stack
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.chart_choice import load_charts
from gpufleet.helm.obstacles import apis_of
from gpufleet.helm.operations.charts import chart_archive, read_chart
from gpufleet.helm.operations.cluster import RunCluster, helm_cache
from gpufleet.helm.release import Release
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.run.report import BAD_STATUSES, HostReport

Stops = dict[Finding, tuple[str, ...]]  # why hosts and clusters were stopped, with their names


def collect_packages(command: Sequence[str], folder: Path) -> tuple[int, Stops]:
    """Collect the packages of hosts in the folder, with pyinfra's command for the deploy `bundle`.
    Returns an exit status, and why hosts were stopped."""
    with (
        tempfile.TemporaryDirectory(prefix="gpufleet-") as work,
        tempfile.TemporaryFile("w+") as table,
    ):
        report = Path(work, "report.json")
        own = {"GPUFLEET_REPORT": str(report), "GPUFLEET_JUNIT": ""}
        own |= {FOLDER_VARIABLE: str(folder.absolute())}
        # the table is one of a plan, which says nothing about a bundle
        status = run_in_front(command, {**os.environ, **own}, table)
        stopped = _stopped(report)
    found = group_by_thing((part.name, each) for part in stopped for each in part.findings)
    return status or (ExitStatus.FAILED if stopped else ExitStatus.CONVERGED), found


def _stopped(report: Path) -> list[HostReport]:
    """The hosts that failed or were not reached; none without a report."""
    try:
        hosts = json.loads(report.read_text("utf-8"))["hosts"]
    except (OSError, ValueError, LookupError):
        return []
    parts = [HostReport.from_dict(name, data) for name, data in hosts.items()]
    return [part for part in parts if part.status in BAD_STATUSES]


def collect_from_clusters(
    clusters: Iterable[tuple[str, Mapping[str, Any]]], hosts: HostData, folder: Path
) -> tuple[list[BundlePart], Stops]:
    """The charts and images that runs would install, and why clusters have no plan. `clusters`:
    names and data in the inventory; `hosts`: its GPU nodes and their data. Raises Stopped."""
    parts, stops = [], []
    for name, data in clusters:
        part, problems = _of_cluster(name, data, hosts, folder)
        parts.append(part)
        stops += [(name, found) for found in problems]
    return parts, group_by_thing(stops)


def _of_cluster(
    name: str, data: Mapping[str, Any], hosts: HostData, folder: Path
) -> tuple[BundlePart, list[Finding]]:
    settings, problems = load_cluster_settings(data)
    if settings is None:
        return BundlePart(), list(problems)
    try:
        cluster = open_stack_cluster(name, settings)
        facts = replace(cluster.facts, gpu_pods={})  # a bundle moves no node, so none must be idle
        plan = plan_stack(settings, facts, load_charts(), node_names(hosts), hosts)
        if plan.blockers:
            return BundlePart(), [found for found in plan.findings if found.blocks]
        return merge_parts(_of_release(cluster, each, folder) for each in plan.releases), []
    except ClusterProblem as problem:
        return BundlePart(), list(problem.findings)


def _of_release(cluster: RunCluster, release: Release, folder: Path) -> BundlePart:
    """The chart of a release, and the images of its objects. Raises ClusterProblem, Stopped."""
    archive = chart_archive(release, cluster.helm, helm_cache())
    content = read_chart(archive, release)
    crds = content.all_crds(release.values)
    cluster.added_apis |= {api for crd in crds for api in apis_of(crd)}
    images = rendered_images(cluster.render(release, archive))
    chart = _chart_file(release, archive)
    if not has_file(folder, chart):
        store_file(folder, chart, [archive.read_bytes()])
    return merge_parts([BundlePart((chart,)), copy_images(folder, images)])


def _chart_file(release: Release, archive: Path) -> BundleFile:
    """The place of a chart: as cluster_chart_dir expects it."""
    location = release.source.location
    source = "" if release.source.kind == "archive" else plain_urls(location)
    return BundleFile(
        f"charts/{release.chart}-{release.version}.tgz",
        file_digest(archive),
        archive.stat().st_size,
        source,
        "chart",
        release.chart,
        release.version,
    )
