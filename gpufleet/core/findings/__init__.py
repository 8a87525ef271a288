"""Findings: problems and notes about a host or cluster, each with a stable code.

A room declares each `Kind` once, with `blocker`, `warning` or `info`. Calling the kind with the
details of one case creates a `Finding`. docs/reference/findings/ is generated from the kinds.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from types import ModuleType

from gpufleet.core.secrets import hide_secrets
from gpufleet.core.visible import BAR, visible_value


class Severity(str, Enum):
    """How serious a finding is. Only a blocker stops its host."""

    INFO = "info"
    WARNING = "warning"
    BLOCKER = "blocker"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about one host. `message` says what and why, `remedy` says what to do next."""

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

    @property
    def paragraph(self) -> str:
        """Code and message, and the remedy on a line below."""
        return f"{self.text}\n  {self.remedy}"

    def __str__(self) -> str:
        return f"{self.code} {self.severity.value}: {self.sentences}"

    @property
    def sentences(self) -> str:
        """Message and remedy. The remedy gets a new line if the message ends with quoted lines."""
        if f"\n{BAR}" in self.message:
            return f"{self.message}\n{self.remedy}"
        end = "" if self.message.endswith((".", "!", "?", ":")) else "."
        return f"{self.message}{end} {self.remedy}"


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Blockers first, then warnings, then infos. Within a severity, the order is unchanged."""
    order = (Severity.BLOCKER, Severity.WARNING, Severity.INFO)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.severity)))


def as_warnings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings with blockers as warnings, for commands that stop nothing."""
    return tuple(
        replace(found, severity=Severity.WARNING) if found.blocks else found for found in findings
    )


KNOWN_KINDS: dict[str, Kind] = {}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding. Calling it fills in the format strings `message` and `remedy`.

    `description` and `advice` replace them on the page of findings, for kinds whose format strings
    mean little without the details of a case.
    """

    code: str
    severity: Severity
    title: str
    message: str
    remedy: str
    description: str = ""
    advice: str = ""

    def __post_init__(self) -> None:
        if self.code in KNOWN_KINDS:
            raise ValueError(f"finding code {self.code} is declared twice")
        KNOWN_KINDS[self.code] = self

    def __call__(self, severity: Severity | None = None, **details: object) -> Finding:
        """Create the finding for one case. `severity` replaces the kind's usual severity.

        Details may be untrusted: each becomes one visible line, or, if it is `Lines`, lines behind
        bars. Secrets are hidden here, because a table could later break a secret into two lines.
        """
        shown = {name: visible_value(value) for name, value in details.items()}
        return Finding(
            self.code,
            severity or self.severity,
            hide_secrets(self.message.format(**shown).replace(" \n", "\n")),
            hide_secrets(self.remedy.format(**shown)),
        )


def blocker(
    code: str, title: str, message: str, remedy: str, description: str = "", advice: str = ""
) -> Kind:
    """Declare a kind of finding that stops its host."""
    return Kind(code, Severity.BLOCKER, title, message, remedy, description, advice)


def warning(
    code: str, title: str, message: str, remedy: str, description: str = "", advice: str = ""
) -> Kind:
    """Declare a kind of finding that a person should act on."""
    return Kind(code, Severity.WARNING, title, message, remedy, description, advice)


def info(
    code: str, title: str, message: str, remedy: str, description: str = "", advice: str = ""
) -> Kind:
    """Declare a kind of finding that a person should know about."""
    return Kind(code, Severity.INFO, title, message, remedy, description, advice)


def finding_modules(package: ModuleType) -> list[ModuleType]:
    """Import the `findings` modules of every room, which adds their kinds to KINDS."""
    root = Path(package.__path__[0])
    found = []
    for path in sorted({*root.rglob("findings.py"), *root.rglob("findings/*.py")}):
        parts = path.relative_to(root.parent).with_suffix("").parts
        found.append(importlib.import_module(".".join(parts).removesuffix(".__init__")))
    return found


def finding_rooms(package: ModuleType) -> dict[str, str]:
    """Code of every finding of a package -> the room that declares it.

    Example: `finding_rooms(gpufleet)["GF112"]` is "driver".
    """
    return {
        value.code: module.__name__.split(".")[1]
        for module in finding_modules(package)
        for value in vars(module).values()
        if isinstance(value, Kind)
    }
