"""Removal plan of the exporter: its services and images. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.exporter.files import units
from gpufleet.exporter.record import ExporterEntry
from gpufleet.role.protocol import Removal, RemovalContext


@dataclass(frozen=True, slots=True)
class ExporterRemoval(Removal):
    """What is removed besides the exporter's packages and files."""

    units: tuple[str, ...] = ()  # to stop and disable
    images: bool = False  # docker may have pulled some
    findings: tuple[Finding, ...] = ()

    def before(self) -> Mapping[str, object]:
        return {f"stop {', '.join(self.units)}": self.units}

    def describe(self) -> dict[str, Any]:
        return {"exporter": list(self.units)}


def plan_exporter_removal(context: RemovalContext[ExporterEntry]) -> ExporterRemoval:
    """The exporter's units of every mode that it had; the exporter before its DCGM."""
    entry, catalog = context.entry, context.catalog
    if not entry.exists:
        return ExporterRemoval()
    packaged = context.recorded or entry.added  # otherwise they are the user's
    systemd = reversed(units("systemd", catalog)) if packaged else ()
    mine = (*units("docker", catalog), *systemd)
    return ExporterRemoval(tuple(u for u in mine if u in context.facts.services), images=True)
