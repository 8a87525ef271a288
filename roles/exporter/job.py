"""The package transactions of the exporter role: DCGM first, then the exporter."""

from __future__ import annotations

from gpufleet.exporter.model import ExporterPlan
from gpufleet.node.catalog import load_catalog
from gpufleet.node.operations.node import Node
from gpufleet.packages.operations.transaction import Job
from gpufleet.packages.transaction import Family

TITLES = ("DCGM", "dcgm-exporter")


def exporter_jobs(node: Node, plan: ExporterPlan) -> list[Job]:
    """The transactions that the plan asks for; none where the exporter runs in a container."""
    if plan.repository is None:
        return []
    manager = node.facts.package_manager
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
            patterns=[load_catalog().exporter.packages.family],
            lock_timeout=node.settings.driver.lock_timeout,
            repair=bool(node.facts.broken),
            before=packages.before,
            role="exporter",
            product="exporter" if title == TITLES[-1] else "",
        )
        for title, packages in zip(TITLES, plan.packages, strict=True)
    ]
