"""The package transaction of the toolkit role."""

from __future__ import annotations

import re

from gpufleet.node.operations.node import Node
from gpufleet.packages.operations.transaction import Job
from gpufleet.packages.transaction import Family
from gpufleet.toolkit.plan import CONFIG, ToolkitPlan


def toolkit_job(node: Node, plan: ToolkitPlan) -> Job:
    """The transaction that the plan asks for."""
    assert node.facts.package_manager, "a host without a package manager is blocked by preflight"
    family = Family(
        title="toolkit",
        packages=plan.packages,
        prefix=plan.target,
        exact=True,
        installed=plan.installed,
        prerequisites=plan.prerequisites,
    )
    return Job(
        family=family,
        needed=plan.changes_packages,
        manager=node.facts.package_manager,
        repository=plan.repository,
        patterns=[re.escape(name) for name in plan.packages],
        lock_timeout=node.settings.driver.lock_timeout,
        repair=bool(node.facts.broken),
        before=plan.before,
        product="toolkit",
        makes=[(CONFIG, there.sha256 if (there := node.facts.files.get(CONFIG)) else "")],
    )
