"""What the toolkit's resolver returns: a choice, its reason, and findings."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.core.findings import Finding
from gpufleet.packages.repository import Repository


@dataclass(frozen=True, slots=True)
class ToolkitChoice:
    """The container toolkit version for a host, and why."""

    version: str
    packages: tuple[str, ...]  # all at `version`
    repository: Repository
    reason: str
    findings: tuple[Finding, ...] = ()

    @property
    def blocked(self) -> bool:
        """True where a finding says that the choice cannot be carried out."""
        return any(finding.blocks for finding in self.findings)
