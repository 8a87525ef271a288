"""The package transaction of the toolkit role."""

from __future__ import annotations

import re

from gpufleet.facts.model import NodeFacts
from gpufleet.packages.job import Job
from gpufleet.packages.transaction import Family
from gpufleet.toolkit.plan import CONFIG, ToolkitPlan


def toolkit_job(facts: NodeFacts, plan: ToolkitPlan, lock_timeout: int) -> Job:
    """The planned transaction."""
    assert facts.package_manager, "a host without a package manager is blocked by preflight"
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
        manager=facts.package_manager,
        repository=plan.repository,
        patterns=[re.escape(name) for name in plan.packages],
        lock_timeout=lock_timeout,
        repair=bool(facts.broken),
        product="toolkit",
        held=facts.holds,
        makes=[(CONFIG, there.sha256 if (there := facts.files.get(CONFIG)) else "")],
    )
