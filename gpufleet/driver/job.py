"""The package transaction of the driver role."""

from __future__ import annotations

from gpufleet.driver.files import PREFERENCES_FILE, TITLE, pinned
from gpufleet.driver.plan import DriverPlan
from gpufleet.driver.settings import DriverSettings
from gpufleet.facts.model import NodeFacts
from gpufleet.packages.job import Job
from gpufleet.packages.transaction import Family


def driver_job(
    settings: DriverSettings, facts: NodeFacts, plan: DriverPlan, lock_timeout: int
) -> Job:
    """The planned transaction. `lock_timeout`: seconds to wait for another package manager."""
    family = Family(
        title=TITLE,
        packages=plan.packages,
        prefix=plan.target or f"{plan.choice.branch}.",
        exact=plan.target is not None,
        installed=plan.installed,
        prerequisites=plan.prerequisites,
        companions=plan.companions,
        conflicting=plan.choice.packages.rivals,
        needed=plan.changes_packages,
        lowest=plan.before or "" if plan.target is None else "",
    )
    return Job(
        role="driver",
        family=family,
        facts=facts,
        repository=plan.repository,
        patterns=plan.choice.packages.family,
        lock_timeout=lock_timeout,
        pin_file=PREFERENCES_FILE if pinned(settings, facts) else "",
    )
