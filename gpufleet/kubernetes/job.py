"""The package transaction of the kubernetes role."""

from __future__ import annotations

import re

from gpufleet.facts.model import NodeFacts
from gpufleet.kubernetes.plan import (
    KubernetesPlan,
)
from gpufleet.packages.job import Job

DEPENDENCIES = ("kubernetes-cni", "cri-tools")


def kubernetes_job(facts: NodeFacts, plan: KubernetesPlan, lock_timeout: int) -> Job:
    """The planned transaction."""
    return Job(
        role="kubernetes",
        family=plan.family,
        facts=facts,
        repository=plan.repository,
        patterns=[re.escape(name) for name in (*plan.family.packages, *DEPENDENCIES)],
        lock_timeout=lock_timeout,
    )
