"""The package transaction of the driver role."""

from __future__ import annotations

from gpufleet.driver.files import pinned, preferences
from gpufleet.driver.plan import DriverPlan
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.job import Job
from gpufleet.packages.transaction import Family, Transaction


def driver_job(
    settings: DriverSettings, facts: NodeFacts, plan: DriverPlan, lock_timeout: int
) -> Job:
    """The planned transaction. `lock_timeout`: seconds to wait for another package manager."""
    family = Family(
        title="driver",
        packages=plan.packages,
        prefix=plan.target or f"{plan.choice.branch}.",
        exact=plan.target is not None,
        installed=plan.installed,
        prerequisites=plan.prerequisites,
        companions=plan.companions,
        conflicting=plan.choice.packages.rivals,
        needed=plan.changes_packages,
    )

    def pins(chosen: Transaction) -> list[FileWrite]:
        if not pinned(settings, facts):
            return []
        file = preferences(plan.packages, chosen.version)
        return [] if file.is_on(facts) else [file]

    return Job(
        role="driver",
        family=family,
        facts=facts,
        repository=plan.repository,
        patterns=plan.choice.packages.family,
        lock_timeout=lock_timeout,
        pins=pins,
    )
