"""One host in depth, without contents of its files. doctor.schema.json describes the JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from gpufleet.core.accepted import split_accepted
from gpufleet.core.findings import Finding, by_severity
from gpufleet.node.catalog import Catalog
from gpufleet.node.described import described_facts
from gpufleet.status.models import FleetStatus, Row, SeenHost
from gpufleet.status.rows import plan_of_host, unreadable_row


@dataclass(frozen=True, slots=True)
class Detail:
    """A host: its state, and all findings about it."""

    row: Row
    has: dict[str, Any]  # empty if it was not read
    findings: tuple[Finding, ...]

    def as_dict(self) -> dict[str, Any]:
        more = {"flags": list(self.row.flags), "steps": list(self.row.steps)} if self.has else {}
        return {
            "reached": self.row.reached,
            "groups": list(self.row.groups),
            **self.has,
            **more,
            "findings": [finding.as_dict() for finding in self.findings],
        }


def host_details(
    hosts: Sequence[SeenHost], fleet: FleetStatus, catalog: Catalog, now: int
) -> list[Detail]:
    """Every host of a fleet in depth."""
    return [_detail(host, row, catalog, now) for host, row in zip(hosts, fleet.rows, strict=True)]


def _detail(host: SeenHost, row: Row, catalog: Catalog, now: int) -> Detail:
    """One host in depth. An error about one host does not affect other hosts."""
    try:
        facts = host.facts
        has = described_facts(facts, catalog) if facts and row.reached else {}
        return Detail(row, has, _findings(host, row, catalog, now))
    except Exception as error:  # noqa: BLE001 - the boundary of one host
        row = unreadable_row(host, error)
        return Detail(row, {}, _findings(host, row, catalog, now))


def _findings(host: SeenHost, row: Row, catalog: Catalog, now: int) -> tuple[Finding, ...]:
    """Findings of the state, the plan and the settings; a repeated finding is listed once."""
    plan = plan_of_host(host, catalog, now) if row.reached else None
    found = [*(note.finding for note in row.notes), *(plan.all_findings if plan else ())]
    known: dict[tuple[str, str], Finding] = {}
    for each in (*found, *host.problems):
        known.setdefault((each.code, each.message), each)
    today = datetime.fromtimestamp(now, timezone.utc).date()
    return by_severity(split_accepted(known.values(), host.accepted, today)[0])
