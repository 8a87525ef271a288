"""The report of a step, as its process wrote it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Report:
    """What a process says of its step; each host's part is looked at for itself."""

    dry: bool
    completed: bool
    exit_status: int
    hosts: dict[str, Any]

    def carried_out(self, status: int) -> bool:
        """Whether the step was carried out to its end: by the report, and by the exit status of the
        process. Without that "converged" says that nothing was found to do, and not that it was
        done."""
        return self.completed and not self.dry and status == self.exit_status


@dataclass(frozen=True, slots=True)
class Said:
    """A finding of a host."""

    code: str
    severity: str
    message: str


@dataclass(frozen=True, slots=True)
class View:
    """What the step `look` sees of a host, as far as its types matter."""

    name: str = ""
    model: str = ""
    distribution: str = ""
    kernel: str = ""
    before: str | None = None
    loaded: str | None = None
    target: str | None = None
    work: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    place: str = ""
    kubelet: bool = False
    machine: str = ""
    owner: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What the report says of one host."""

    status: str
    errors: list[str] = field(default_factory=list)
    findings: list[Said] = field(default_factory=list)
    plan: dict[str, Any] = field(default_factory=dict)

    @property
    def view(self) -> Mapping[str, Any]:
        """What the step `look` saw; empty for other steps."""
        view: Mapping[str, Any] = self.plan.get("upgrade") or {}
        return view


REPORT, PART, VIEW = TypeAdapter(Report), TypeAdapter(Part), TypeAdapter(View)


def read_report(file: Path) -> Report:
    """Raises OSError or ValueError."""
    try:
        data = json.loads(file.read_bytes())
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    return REPORT.validate_python(data)


def read_part(data: object) -> Part:
    """Raises ValueError."""
    part = PART.validate_python(data)
    VIEW.validate_python(part.view)
    return part
