"""The package transaction of the driver role."""

from __future__ import annotations

from gpufleet.driver.files import preferences
from gpufleet.driver.plan import DriverPlan
from gpufleet.host.file_write import FileWrite
from gpufleet.node.operations.node import Node
from gpufleet.packages.operations.transaction import Job
from gpufleet.packages.transaction import Family, Transaction


def driver_job(node: Node, plan: DriverPlan) -> Job:
    """The transaction that the plan asks for."""
    assert node.facts.package_manager, "a host without a package manager is blocked by preflight"
    family = Family(
        title="driver",
        packages=plan.packages,
        prefix=plan.target or f"{plan.choice.branch}.",
        exact=plan.target is not None,
        installed=plan.installed,
        prerequisites=plan.prerequisites,
        companions=plan.companions,
        conflicting=plan.choice.packages.rivals,
    )

    def pins(chosen: Transaction) -> list[FileWrite]:
        if node.facts.package_manager != "apt" or not node.settings.driver.hold:
            return []
        file = preferences(plan.packages, chosen.version)
        return [] if file.is_on(node.facts) else [file]

    return Job(
        family=family,
        needed=plan.changes_packages,
        manager=node.facts.package_manager,
        repository=plan.repository,
        patterns=plan.choice.packages.family,
        lock_timeout=node.settings.driver.lock_timeout,
        repair=bool(node.facts.broken),
        before=plan.before,
        product="driver",
        pins=pins,
        held=node.facts.holds,
    )
