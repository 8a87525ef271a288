"""Results of the containerd role for the record on the host and for the report."""

from __future__ import annotations

from gpufleet.containerd.plan import ContainerdPlan
from gpufleet.containerd.record import ContainerdEntry
from gpufleet.facts.model import NodeFacts
from gpufleet.packages.added import carried
from gpufleet.packages.job import Found, versions_of
from gpufleet.role.result import RoleResult, digests


def conclude(facts: NodeFacts, plan: ContainerdPlan, found: Found | None) -> RoleResult:
    """What the host has now. `found`: the transaction, if one ran."""
    old = facts.provenance.entry(ContainerdEntry)
    version = found.transaction.version if found else plan.before
    packages = versions_of(plan.family.packages, facts, found, old)
    entry = ContainerdEntry(version=version, packages=packages)
    source = plan.repository.source
    return RoleResult(carried(entry, old), digests([source] if source else []), version)
