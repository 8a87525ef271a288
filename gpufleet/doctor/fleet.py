"""Judges the hosts and clusters of an inventory by state and plan. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import ListedHost
from gpufleet.doctor.gpus import peers_by_host
from gpufleet.doctor.judge import (
    OF_CLUSTERS,
    fold_consequences,
    judge_checks,
    judge_host,
    unread_verdict,
)
from gpufleet.doctor.models import DoctorCheck, JudgedFleet, SubjectVerdict
from gpufleet.doctor.plugin_pods import PluginPods
from gpufleet.node.catalog import Catalog, load_catalog
from gpufleet.status.clusters import Part, cluster_rows, findings_of_cluster
from gpufleet.status.detail import host_details
from gpufleet.status.models import ClusterRow, SeenHost
from gpufleet.status.rows import fleet_of

PLUGIN_CHECK = "cluster.plugin"
NO_PLUGIN_PODS: Mapping[str, PluginPods] = {}


@dataclass(frozen=True, slots=True)
class ReadFleet:
    """The hosts and clusters of an inventory as they were read. `clusters`: name -> its part of a
    plan's report; `plugins`: name -> the pods of its device plugin; `targets`: the clusters with
    their data."""

    inventory: str
    hosts: Sequence[SeenHost]
    clusters: Mapping[str, Part | None]
    plugins: Mapping[str, PluginPods]
    targets: Sequence[ListedHost] = ()

    def judge(self, checks: Sequence[DoctorCheck], now: int) -> JudgedFleet:
        """The verdicts by these checks. `now`: seconds since 1970."""
        catalog = load_catalog()
        return judge_fleet(
            self.inventory, self.hosts, self.clusters, checks, catalog, now, self.plugins
        )


def judge_fleet(
    inventory: str,
    hosts: Sequence[SeenHost],
    clusters: Mapping[str, Part | None],
    checks: Sequence[DoctorCheck],
    catalog: Catalog,
    now: int,
    plugins: Mapping[str, PluginPods] = NO_PLUGIN_PODS,
) -> JudgedFleet:
    """The verdicts on hosts and clusters. `clusters`: name -> its part of a plan's report;
    `plugins`: name -> the pods of its device plugin."""
    details = host_details(hosts, fleet_of(inventory, hosts, (), catalog, now), catalog, now)
    peers = peers_by_host([host.facts.health if host.facts else None for host in hosts])
    verdicts = (
        judge_host(host.name, host.facts if detail.has else None, detail.findings, checks, others)
        for host, detail, others in zip(hosts, details, peers, strict=True)
    )
    parts = {name: part for name, part in clusters.items() if part}
    of_clusters = (
        _judge_cluster(row, findings_of_cluster(clusters[row.name]), checks, plugins.get(row.name))
        for row in cluster_rows(clusters, parts)
    )
    return JudgedFleet(inventory, tuple(verdicts), tuple(details), tuple(of_clusters))


def _judge_cluster(
    row: ClusterRow,
    found: Collection[Finding],
    checks: Sequence[DoctorCheck],
    plugin: PluginPods | None,
) -> SubjectVerdict:
    """The verdict on a cluster, by the findings of its plan and the pods of its device plugin."""
    if not row.reached:
        return unread_verdict(row.name, found, "cluster", "The cluster was not read.")
    own = [check for check in checks if check.id.startswith(OF_CLUSTERS)]
    readings = {PLUGIN_CHECK: plugin.link if plugin else None}
    return SubjectVerdict(
        row.name, tuple(fold_consequences(judge_checks(own, readings, found), own))
    )
