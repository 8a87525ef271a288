"""The clusters of a fleet, derived from the report of their plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpufleet.core.findings import Finding, Severity
from gpufleet.helm.findings.releases import KEPT_RELEASE_FAILED, RELEASE_BEHIND
from gpufleet.status.findings import CLUSTER_NOT_READ, DRIFT
from gpufleet.status.models import ClusterRow, Note

KEPT_DRIFT = (RELEASE_BEHIND.code, KEPT_RELEASE_FAILED.code)  # of releases that Flux applies
Part = Mapping[str, Any]  # of a cluster in the report of a plan: run/report.schema.json


def cluster_rows(names: Iterable[str], parts: Mapping[str, Part]) -> tuple[ClusterRow, ...]:
    """A row for each cluster. A cluster that is not in the report was not read."""
    return tuple(_row(name, parts.get(name)) for name in names)


def _row(name: str, part: Part | None) -> ClusterRow:
    if part is None:
        unread = Note("unreachable", CLUSTER_NOT_READ(cluster=name))
        return ClusterRow(name, reached=False, notes=(unread,))
    installed = {each: versions["before"] for each, versions in part["releases"].items()}
    reached = part["status"] != "not reached"
    steps = tuple(part["plan"]["steps"])
    found = findings_of_cluster(part)
    notes = [Note("blocked" if reached else "unreachable", each) for each in found if each.blocks]
    notes += [Note("drift", each) for each in found if each.code in KEPT_DRIFT]
    if steps:
        notes.append(Note("drift", DRIFT(kind="cluster", steps="; ".join(steps))))
    return ClusterRow(
        name,
        reached=reached,
        releases=tuple((each, version) for each, version in installed.items() if version),
        steps=steps,
        notes=tuple(notes),
    )


def findings_of_cluster(part: Part | None) -> list[Finding]:
    """Every finding about a cluster, [] if it was not read."""
    given = part["findings"] if part else ()
    return [Finding(**{**each, "severity": Severity(each["severity"])}) for each in given]
