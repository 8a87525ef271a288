"""The package transaction of the toolkit role."""

from __future__ import annotations

import re

from gpufleet.facts.model import NodeFacts
from gpufleet.packages.job import Job
from gpufleet.packages.transaction import Family
from gpufleet.toolkit.plan import ToolkitPlan
from gpufleet.toolkit.runtime_result import CONFIG


def toolkit_job(facts: NodeFacts, plan: ToolkitPlan, lock_timeout: int) -> Job:
    """The planned transaction."""
    family = Family(
        title="toolkit",
        packages=plan.packages,
        prefix=plan.target,
        exact=True,
        installed=plan.installed,
        prerequisites=plan.prerequisites,
        needed=plan.changes_packages,
    )
    return Job(
        role="toolkit",
        family=family,
        facts=facts,
        repository=plan.repository,
        patterns=[re.escape(name) for name in plan.packages],
        lock_timeout=lock_timeout,
        makes=[(CONFIG, there.sha256 if (there := facts.files.get(CONFIG)) else "")],
    )
