"""The package transactions of the exporter role: DCGM first, then the exporter."""

from __future__ import annotations

from gpufleet.exporter.model import ExporterPlan
from gpufleet.exporter.models import ExporterCatalog
from gpufleet.facts.model import NodeFacts
from gpufleet.packages.job import Job
from gpufleet.packages.transaction import Family

TITLES = ("DCGM", "dcgm-exporter")


def exporter_jobs(
    facts: NodeFacts, plan: ExporterPlan, catalog: ExporterCatalog, lock_timeout: int
) -> list[Job]:
    """The planned transactions; none if the exporter runs in a container."""
    if plan.repository is None:
        return []
    manager = facts.package_manager
    assert manager, "a host without a package manager is blocked by preflight"
    return [
        Job(
            family=Family(
                title=title,
                packages=packages.names,
                prefix=packages.prefix,
                exact=packages.exact,
                installed=packages.installed,
            ),
            needed=packages.needed,
            manager=manager,
            repository=plan.repository,
            patterns=[catalog.exporter.packages.family],
            lock_timeout=lock_timeout,
            repair=bool(facts.broken),
            held=facts.holds,
            role="exporter",
            product="exporter" if title == TITLES[-1] else "",
        )
        for title, packages in zip(TITLES, plan.packages, strict=True)
    ]
