"""What the host's record has of each role, and whether it can be used. Pure."""

from __future__ import annotations

from gpufleet.core.findings import Finding
from gpufleet.driver.record import DriverEntry
from gpufleet.exporter.record import ExporterEntry
from gpufleet.facts.files import COPIES, PROVENANCE
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import Entry
from gpufleet.host.findings import access
from gpufleet.toolkit.record import ToolkitEntry

ENTRIES: tuple[type[Entry], ...] = (DriverEntry, ToolkitEntry, ExporterEntry)


def unusable(facts: NodeFacts) -> list[Finding]:
    """A blocker where the host has a record that cannot be used."""
    file = facts.files.get(PROVENANCE)
    problem = (file.error if file else "") or facts.provenance.trouble(ENTRIES)
    if not problem:
        return []
    return [access.RECORD_UNUSABLE(path=PROVENANCE, problem=problem, folder=COPIES)]
