"""Judges the hosts and clusters of an inventory. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpufleet.doctor.judge import judge_cluster_state, judge_host, judge_state
from gpufleet.doctor.models import DoctorCheck, SubjectVerdict, Verdict, worst_verdict
from gpufleet.node.catalog import Catalog
from gpufleet.status.clusters import Part, cluster_rows, findings_of_cluster
from gpufleet.status.detail import Detail, host_details
from gpufleet.status.models import SeenHost
from gpufleet.status.rows import fleet_of


@dataclass(frozen=True, slots=True)
class JudgedFleet:
    """The verdicts on hosts and clusters. `details`: the hosts in depth, () without a plan."""

    inventory: str
    hosts: tuple[SubjectVerdict, ...]
    details: tuple[Detail, ...] = ()
    clusters: tuple[SubjectVerdict, ...] = ()

    @property
    def every(self) -> tuple[SubjectVerdict, ...]:
        return (*self.hosts, *self.clusters)

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return worst_verdict(each.verdict for each in self.every)


def judge_fleet(
    inventory: str,
    hosts: Sequence[SeenHost],
    clusters: Mapping[str, Part | None],
    checks: Sequence[DoctorCheck],
    catalog: Catalog,
    now: int,
) -> JudgedFleet:
    """The verdicts by state and plan. `clusters`: name -> its part of a plan's report."""
    fleet = fleet_of(inventory, hosts, (), catalog, now)
    details = host_details(hosts, fleet, catalog, now)
    verdicts = (
        judge_host(host.name, host.facts if detail.has else None, detail.findings, checks)
        for host, detail in zip(hosts, details, strict=True)
    )
    parts = {name: part for name, part in clusters.items() if part}
    of_clusters = (
        judge_cluster_state(row, findings_of_cluster(clusters[row.name]), checks)
        for row in cluster_rows(clusters, parts)
    )
    return JudgedFleet(inventory, tuple(verdicts), tuple(details), tuple(of_clusters))


def judge_states(
    inventory: str, hosts: Sequence[SeenHost], checks: Sequence[DoctorCheck]
) -> JudgedFleet:
    """The verdicts on hosts by their state alone: without catalog, plan and other hosts."""
    return JudgedFleet(inventory, tuple(judge_state(host, checks) for host in hosts))
