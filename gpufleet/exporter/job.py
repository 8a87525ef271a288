"""The package transactions of the exporter role: DCGM first, then the exporter."""

from __future__ import annotations

from gpufleet.exporter.model import ExporterPlan
from gpufleet.exporter.models import ExporterCatalog
from gpufleet.facts.model import NodeFacts
from gpufleet.packages.job import Job


def exporter_jobs(
    facts: NodeFacts, plan: ExporterPlan, catalog: ExporterCatalog, lock_timeout: int
) -> list[Job]:
    """The planned transactions; none if the exporter runs in a container."""
    if plan.repository is None:
        return []
    return [
        Job(
            role="exporter",
            family=family,
            facts=facts,
            repository=plan.repository,
            patterns=[catalog.exporter.packages.family],
            lock_timeout=lock_timeout,
            reports=family is plan.packages[-1],
        )
        for family in plan.packages
    ]
