"""Errors of the sandbox: cause and remedy, each with a stable code."""

from __future__ import annotations

from gpufleet.core.findings import Finding
from gpufleet_sandbox import findings as kinds

__all__ = ["SandboxError", "kinds"]


class SandboxError(Exception):
    """A command of the sandbox failed. `finding` has code, message and remedy."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(f"{finding.code}: {finding.sentences}")
