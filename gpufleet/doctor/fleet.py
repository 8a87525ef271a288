"""Judges the hosts and clusters of an inventory by state and plan. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpufleet.core.inventory import ListedHost
from gpufleet.doctor.cluster_links import ReadCluster, read_releases
from gpufleet.doctor.export import ssh_words
from gpufleet.doctor.fix import with_fixes
from gpufleet.doctor.gpus import peers_by_host
from gpufleet.doctor.judge import (
    OF_CLUSTERS,
    fold_consequences,
    judge_checks,
    judge_host,
    unread_verdict,
)
from gpufleet.doctor.models import DoctorCheck, JudgedFleet, Readings, SubjectVerdict
from gpufleet.doctor.monitoring import TARGET, ClusterMonitoring
from gpufleet.node.catalog import load_catalog
from gpufleet.status.clusters import Part, cluster_rows, findings_of_cluster
from gpufleet.status.detail import host_details
from gpufleet.status.models import ClusterRow, SeenHost
from gpufleet.status.rows import fleet_of

RELEASES_CHECK = "cluster.releases"


@dataclass(frozen=True, slots=True)
class ReadFleet:
    """The hosts and clusters of an inventory as they were read. `clusters`: name -> its part of a
    plan's report; `read`: name -> what its API server says; `targets`: the clusters with their
    data; `monitoring`: name -> the readings by its Prometheus."""

    inventory: str
    hosts: Sequence[SeenHost]
    clusters: Mapping[str, Part | None]
    read: Mapping[str, ReadCluster] = field(default_factory=dict)
    targets: Sequence[ListedHost] = ()
    monitoring: Mapping[str, ClusterMonitoring] = field(default_factory=dict)

    def judge(self, checks: Sequence[DoctorCheck], now: int) -> JudgedFleet:
        """The verdicts by these checks. `now`: seconds since 1970."""
        catalog = load_catalog()
        fleet = fleet_of(self.inventory, self.hosts, (), catalog, now)
        details = host_details(self.hosts, fleet, catalog, now)
        peers = peers_by_host([host.facts.health if host.facts else None for host in self.hosts])
        verdicts = (
            _with_commands(
                host,
                judge_host(
                    host.name,
                    host.facts if detail.has else None,
                    detail.findings,
                    checks,
                    others,
                    _scrapes_of(host, self.monitoring.values()),
                ),
            )
            for host, detail, others in zip(self.hosts, details, peers, strict=True)
        )
        machines = _judged_machines(self.hosts, checks)
        parts = {name: part for name, part in self.clusters.items() if part}
        of_clusters = (
            with_fixes(self._judge_cluster(row, checks, machines), None, self.read.get(row.name))
            for row in cluster_rows(self.clusters, parts)
        )
        return JudgedFleet(self.inventory, tuple(verdicts), tuple(details), tuple(of_clusters))

    def _judge_cluster(
        self, row: ClusterRow, checks: Sequence[DoctorCheck], machines: Collection[str]
    ) -> SubjectVerdict:
        """The verdict on a cluster, by the report of its plan and by the readings of its API server
        and of Prometheus. `machines`: of the hosts whose exporters are judged with them."""
        part = self.clusters[row.name]
        found = findings_of_cluster(part)
        if not (row.reached and part):
            return unread_verdict(row.name, found, "cluster", "The cluster was not read.")
        own = [check for check in checks if check.id.startswith(OF_CLUSTERS)]
        read, scraped = self.read.get(row.name), self.monitoring.get(row.name)
        readings = {
            **(scraped.of_cluster(machines) if scraped else {}),
            **(read.readings if read else {}),
            RELEASES_CHECK: read_releases(part),
        }
        return SubjectVerdict(
            row.name, tuple(fold_consequences(judge_checks(own, readings, found), own))
        )


def _with_commands(host: SeenHost, found: SubjectVerdict) -> SubjectVerdict:
    """The verdict with its safe fixes and the words of its login, for the next commands."""
    login = ssh_words(host.name, host.data)
    return replace(with_fixes(found, host.facts, None), login=login)


def _scrapes_of(host: SeenHost, monitoring: Iterable[ClusterMonitoring]) -> Readings:
    """The readings of a host by the Prometheus of its cluster."""
    machine = host.facts.machine_id if host.facts else ""
    return next((own for each in monitoring if (own := each.of_machine(machine))), {})


def _judged_machines(hosts: Iterable[SeenHost], checks: Iterable[DoctorCheck]) -> set[str]:
    """The machine ids of the hosts whose exporters are judged with them."""
    if not any(check.id == TARGET for check in checks):
        return set()
    facts = [host.facts for host in hosts if host.facts and host.facts.privileged]
    return {each.machine_id for each in facts if each.machine_id}
