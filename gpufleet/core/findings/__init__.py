"""Findings: problems and notes about a host or cluster, each with a stable code.

A `Kind` is declared once, in its room, by `blocker`, `warning` or `info`; `kind(...)` with the
details of one case creates a `Finding`. docs/reference/findings.md is generated from the kinds.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import ModuleType

from gpufleet.core.secrets import hide_secrets
from gpufleet.core.visible import BAR, visible


class Severity(str, Enum):
    """How much a finding matters: a blocker stops the host, the others do not."""

    INFO = "info"
    WARNING = "warning"
    BLOCKER = "blocker"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found on one host. `message` says what and why, `remedy` what to do next."""

    code: str
    severity: Severity
    message: str
    remedy: str

    @property
    def blocks(self) -> bool:
        return self.severity is Severity.BLOCKER

    def as_dict(self) -> dict[str, str]:
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "remedy": self.remedy,
        }

    @property
    def text(self) -> str:
        """Code and message."""
        return f"{self.code} {self.message}"

    def __str__(self) -> str:
        return f"{self.code} {self.severity.value}: {self.sentences}"

    @property
    def sentences(self) -> str:
        """Message and remedy; the remedy on its own line where the message ends with lines."""
        if f"\n{BAR}" in self.message:
            return f"{self.message}\n{self.remedy}"
        end = "" if self.message.endswith((".", "!", "?", ":")) else "."
        return f"{self.message}{end} {self.remedy}"


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Blockers first, then warnings, then infos; the order within a severity is unchanged."""
    order = (Severity.BLOCKER, Severity.WARNING, Severity.INFO)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.severity)))


def as_warnings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The same, where nothing has to stop: a blocker becomes a warning."""
    return tuple(
        replace(found, severity=Severity.WARNING) if found.blocks else found for found in findings
    )


KINDS: dict[str, Kind] = {}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding: `message` and `remedy` are format strings, filled in by calling it.

    The page of findings prints `description` and `advice` in their place where they are set: for
    kinds whose format string says nothing without the details of a case.
    """

    code: str
    severity: Severity
    title: str
    message: str
    remedy: str
    description: str = ""
    advice: str = ""

    def __post_init__(self) -> None:
        if self.code in KINDS:
            raise ValueError(f"finding code {self.code} is declared twice")
        KINDS[self.code] = self

    def __call__(self, severity: Severity | None = None, **details: object) -> Finding:
        """The finding for one case; `severity` replaces the usual one where the case differs.

        A detail may be untrusted: each is rendered as one visible line, or as `Lines` behind bars.
        Registered secrets are hidden here: a table may break one in two.
        """
        shown = {name: visible(value) for name, value in details.items()}
        return Finding(
            self.code,
            severity or self.severity,
            hide_secrets(self.message.format(**shown).replace(" \n", "\n")),
            hide_secrets(self.remedy.format(**shown)),
        )


def blocker(
    code: str, title: str, message: str, remedy: str, description: str = "", advice: str = ""
) -> Kind:
    """A kind of finding that stops its host."""
    return Kind(code, Severity.BLOCKER, title, message, remedy, description, advice)


def warning(
    code: str, title: str, message: str, remedy: str, description: str = "", advice: str = ""
) -> Kind:
    """A kind of finding that a person should act on."""
    return Kind(code, Severity.WARNING, title, message, remedy, description, advice)


def info(
    code: str, title: str, message: str, remedy: str, description: str = "", advice: str = ""
) -> Kind:
    """A kind of finding that a person should know."""
    return Kind(code, Severity.INFO, title, message, remedy, description, advice)


def finding_modules(package: ModuleType) -> list[ModuleType]:
    """The findings of every room of a package; importing them declares them in KINDS."""
    root = Path(package.__path__[0])
    found = []
    for path in sorted({*root.rglob("findings.py"), *root.rglob("findings/*.py")}):
        parts = path.relative_to(root.parent).with_suffix("").parts
        found.append(importlib.import_module(".".join(parts).removesuffix(".__init__")))
    return found
