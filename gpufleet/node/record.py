"""The entries of the host's record by role, and whether they are valid. Pure."""

from __future__ import annotations

from gpufleet.core.findings import Finding
from gpufleet.facts.files import BACKUPS, PROVENANCE
from gpufleet.facts.model import NodeFacts
from gpufleet.host import findings as access
from gpufleet.role.listing import node_roles


def unusable(facts: NodeFacts) -> list[Finding]:
    """A blocker if the host's record is invalid."""
    file = facts.files.get(PROVENANCE)
    trouble = facts.provenance.trouble(role.entry for role in node_roles())
    problem = (file.error if file else "") or trouble
    if not problem:
        return []
    return [access.RECORD_UNUSABLE(path=PROVENANCE, problem=problem, folder=BACKUPS)]
