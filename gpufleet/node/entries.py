"""What the host's record has of each role."""

from __future__ import annotations

from gpufleet.driver.record import DriverEntry
from gpufleet.exporter.record import ExporterEntry
from gpufleet.facts.record import Entry
from gpufleet.toolkit.record import ToolkitEntry

ENTRIES: tuple[type[Entry], ...] = (DriverEntry, ToolkitEntry, ExporterEntry)
