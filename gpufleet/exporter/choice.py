"""What the exporter's resolver returns: a choice, its reason, and findings."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.core.findings import Finding


@dataclass(frozen=True, slots=True)
class ExporterChoice:
    """The exporter for a host, as packages and as a container, and why."""

    version: str
    dcgm: str  # the matching version of DCGM; "" if unknown
    dcgm_packages: tuple[str, ...]  # all at DCGM's version
    exporter_packages: tuple[str, ...]  # at the exporter's version, or one with that prefix
    image: str
    no_packages: str  # why there are no packages for the host; "" if there are
    reason: str
    findings: tuple[Finding, ...] = ()
