"""The package transaction of the containerd role."""

from __future__ import annotations

import re

from gpufleet.containerd.plan import ContainerdPlan
from gpufleet.facts.model import NodeFacts
from gpufleet.packages.job import Job


def containerd_job(facts: NodeFacts, plan: ContainerdPlan, lock_timeout: int) -> Job:
    """The planned transaction."""
    return Job(
        role="containerd",
        family=plan.family,
        facts=facts,
        repository=plan.repository,
        patterns=[re.escape(plan.package)],
        lock_timeout=lock_timeout,
    )
