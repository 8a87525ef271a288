"""Judges the hosts and clusters of an inventory by state and plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpufleet.doctor.cluster_links import ReadCluster, read_releases
from gpufleet.doctor.gpus import peers_by_host
from gpufleet.doctor.judge import (
    OF_CLUSTERS,
    fold_consequences,
    judge_checks,
    judge_host,
    unread_verdict,
)
from gpufleet.doctor.models import DoctorCheck, JudgedFleet, SubjectVerdict
from gpufleet.node.catalog import Catalog, load_catalog
from gpufleet.status.clusters import Part, cluster_rows, findings_of_cluster
from gpufleet.status.detail import host_details
from gpufleet.status.models import ClusterRow, SeenHost
from gpufleet.status.rows import fleet_of

RELEASES_CHECK = "cluster.releases"
NOTHING_READ: Mapping[str, ReadCluster] = {}


@dataclass(frozen=True, slots=True)
class ReadFleet:
    """The hosts and clusters of an inventory as they were read. `clusters`: name -> its part of a
    plan's report; `read`: name -> what its API server says."""

    inventory: str
    hosts: Sequence[SeenHost]
    clusters: Mapping[str, Part | None]
    read: Mapping[str, ReadCluster]

    def judge(self, checks: Sequence[DoctorCheck], now: int) -> JudgedFleet:
        """The verdicts by these checks. `now`: seconds since 1970."""
        catalog = load_catalog()
        return judge_fleet(
            self.inventory, self.hosts, self.clusters, checks, catalog, now, self.read
        )


def judge_fleet(
    inventory: str,
    hosts: Sequence[SeenHost],
    clusters: Mapping[str, Part | None],
    checks: Sequence[DoctorCheck],
    catalog: Catalog,
    now: int,
    read: Mapping[str, ReadCluster] = NOTHING_READ,
) -> JudgedFleet:
    """The verdicts on hosts and clusters. `clusters`: name -> its part of a plan's report; `read`:
    name -> what its API server says."""
    details = host_details(hosts, fleet_of(inventory, hosts, (), catalog, now), catalog, now)
    peers = peers_by_host([host.facts.health if host.facts else None for host in hosts])
    verdicts = (
        judge_host(host.name, host.facts if detail.has else None, detail.findings, checks, others)
        for host, detail, others in zip(hosts, details, peers, strict=True)
    )
    parts = {name: part for name, part in clusters.items() if part}
    of_clusters = (
        _judge_cluster(row, clusters[row.name], checks, read.get(row.name))
        for row in cluster_rows(clusters, parts)
    )
    return JudgedFleet(inventory, tuple(verdicts), tuple(details), tuple(of_clusters))


def _judge_cluster(
    row: ClusterRow,
    part: Part | None,
    checks: Sequence[DoctorCheck],
    read: ReadCluster | None,
) -> SubjectVerdict:
    """The verdict on a cluster, by the report of its plan and what its API server says."""
    found = findings_of_cluster(part)
    if not (row.reached and part):
        return unread_verdict(row.name, found, "cluster", "The cluster was not read.")
    own = [check for check in checks if check.id.startswith(OF_CLUSTERS)]
    readings = {**(read.readings if read else {}), RELEASES_CHECK: read_releases(part)}
    return SubjectVerdict(
        row.name, tuple(fold_consequences(judge_checks(own, readings, found), own))
    )
