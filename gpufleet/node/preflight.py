"""Findings about a host before anything is changed. Pure."""

from __future__ import annotations

from gpufleet.core.findings import Finding
from gpufleet.facts.model import NodeFacts
from gpufleet.node import findings
from gpufleet.node.catalog import Catalog
from gpufleet.packages import findings as package_findings
from gpufleet.packages.repository import revoked_keys

CLOCK_TOLERANCE = 300  # seconds; larger differences break signatures and TLS
CARRIED_OUT_WITH = ("apt", "dnf", "yum")


def inspect_host(facts: NodeFacts, catalog: Catalog, now: int) -> list[Finding]:
    """Findings that do not depend on the driver. `now`: seconds since 1970 on this machine."""
    found: list[Finding] = []
    if facts.package_manager not in CARRIED_OUT_WITH:
        found.append(
            package_findings.UNSUPPORTED_MANAGER(manager=facts.package_manager or "none at all")
        )
    skew = facts.clock - now
    if abs(skew) > CLOCK_TOLERANCE:
        found.append(
            findings.CLOCK_SKEW(seconds=abs(skew), direction="ahead of" if skew > 0 else "behind")
        )
    if facts.lock_holder:
        found.append(package_findings.LOCK_HELD(holder=facts.lock_holder))
    return [*found, *revoked_keys(catalog.cuda, facts)]
