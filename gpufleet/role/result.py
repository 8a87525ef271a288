"""The results of a role's run, for the record on the host and for the report."""

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
    """`files`: path -> sha256 of the files that the role wrote, now or in an earlier run."""

    entry: RoleEntry
    files: dict[str, str]
    version: str | None  # installed now
    needs: tuple[str, ...] = ()  # manual steps that remain
    findings: tuple[Finding, ...] = ()
    runtimes: dict[str, RuntimeState] = field(default_factory=dict)
    solved: tuple[str, ...] = ()  # codes of the plan's findings that no longer apply

    def as_json(self) -> dict[str, Any]:
        """The role's part of the record."""
        return {self.entry.role: self.entry.as_json(), "files": self.files}


def file_digests(files: Iterable[FileWrite]) -> dict[str, str]:
    """Path -> sha256 of these files."""
    return {file.path: hashlib.sha256(file.data).hexdigest() for file in files}
