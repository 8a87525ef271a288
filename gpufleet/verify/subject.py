"""The subject of a check: how a check fails or is skipped."""

from __future__ import annotations

from typing import NoReturn

import pytest

from gpufleet.core.findings import Finding, Kind
from gpufleet.core.visible import one_line
from gpufleet.verify.inventory import Target


class CheckFailed(AssertionError):
    """A check that failed; with its finding. Its text is the whole message for the user."""

    def __init__(self, host: str, finding: Finding) -> None:
        self.finding = finding
        super().__init__(f"{finding.code} {one_line(host)}: {finding.sentences}")


class Subject:
    """A host or a cluster of the inventory."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.name, self.data = target.name, target.data

    def fail(self, kind: Kind, expected: str, found: str, **details: str) -> NoReturn:
        raise CheckFailed(self.name, kind(None, expected=expected, found=found, **details))

    def expect(self, ok: bool, kind: Kind, expected: str, found: str, **details: str) -> None:
        """Fail with this kind unless `ok`. `expected` and `found` are text for the user."""
        if not ok:
            self.fail(kind, expected, found, **details)

    def expect_settings(self, kind: Kind) -> None:
        """Fail with this kind where a deploy would stop at the settings."""
        problems = self.target.problems
        self.need(problems is not None, "only `gpufleet verify` reads the settings")
        self.expect(not problems, kind, "valid settings", "; ".join(problems or ()))

    def need(self, ok: object, reason: str) -> None:
        """Skip the check, with the reason, unless it applies."""
        if not ok:
            pytest.skip(reason)
