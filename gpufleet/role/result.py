"""What a run of a role learned: for the record on the host and for the report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.node_roles import RuntimeState
from gpufleet.facts.record import RoleEntry
from gpufleet.host.file_write import FileWrite


@dataclass(frozen=True, slots=True)
class RoleResult:
    """`files`: path -> sha256 of what the role wrote, now or in an earlier run."""

    entry: RoleEntry
    files: dict[str, str]
    version: str | None  # that is there now
    needs: tuple[str, ...] = ()  # what a person still has to do
    findings: tuple[Finding, ...] = ()
    runtimes: dict[str, RuntimeState] = field(default_factory=dict)
    solved: tuple[str, ...] = ()  # codes of findings of the plan that no longer hold

    def as_json(self) -> dict[str, Any]:
        """Its part of the record."""
        return {self.entry.role: self.entry.as_json(), "files": self.files}


def digests(files: Iterable[FileWrite]) -> dict[str, str]:
    """Path -> sha256."""
    return {file.path: hashlib.sha256(file.data).hexdigest() for file in files}
