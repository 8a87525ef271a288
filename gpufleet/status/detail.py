"""One host in depth, without contents of its files. doctor.schema.json describes the JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from gpufleet.core.accepted import split_accepted
from gpufleet.core.findings import Finding, by_severity
from gpufleet.driver.catalog import devices_of
from gpufleet.driver.health import missing_gpus
from gpufleet.exporter.files import in_words
from gpufleet.facts.model import NodeFacts
from gpufleet.node.catalog import Catalog
from gpufleet.status.export import head
from gpufleet.status.models import Fleet, Row, Seen
from gpufleet.status.rows import planned, unreadable
from gpufleet.status.unused import newer_kernel


@dataclass(frozen=True, slots=True)
class Detail:
    """A host: what it has, and everything that was found about it."""

    row: Row
    has: dict[str, Any]  # {}: it was not read
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


def details(hosts: Sequence[Seen], fleet: Fleet, catalog: Catalog, now: int) -> list[Detail]:
    """Every host of a fleet in depth."""
    return [_detail(host, row, catalog, now) for host, row in zip(hosts, fleet.rows, strict=True)]


def as_json(found: Sequence[Detail], fleet: Fleet, now: int) -> dict[str, Any]:
    """The document of `gpufleet doctor --json`."""
    return {
        **head(fleet.inventory, now),
        "hosts": {each.row.name: each.as_dict() for each in found},
        "clusters": list(fleet.clusters),
    }


def _detail(host: Seen, row: Row, catalog: Catalog, now: int) -> Detail:
    """One host. What it answers ends no other."""
    try:
        has: dict[str, Any] = {}
        if (facts := host.facts) and row.reached:
            has = {
                **_system(facts, row),
                **_gpus(facts, catalog),
                **_driver(facts),
                "toolkit": row.toolkit or None,
                **_work(facts),
                "collectors": [in_words([daemon], catalog) for daemon in facts.collectors],
                "recorded": facts.provenance.exists,
            }
        return Detail(row, has, _findings(host, row, catalog, now))
    except Exception as error:  # noqa: BLE001 - the boundary of one host
        row = unreadable(host, error)
        return Detail(row, {}, _findings(host, row, catalog, now))


def _findings(host: Seen, row: Row, catalog: Catalog, now: int) -> tuple[Finding, ...]:
    """Of the state, the plan and the settings; what two of them say is said once, as the first."""
    plan = planned(host, catalog, now) if row.reached else None
    found = [*(note.finding for note in row.notes), *(plan.all_findings if plan else ())]
    known: dict[tuple[str, str], Finding] = {}
    for each in (*found, *host.problems):
        known.setdefault((each.code, each.message), each)
    today = datetime.fromtimestamp(now, timezone.utc).date()
    return by_severity(split_accepted(known.values(), host.accepted, today)[0])


def _system(facts: NodeFacts, row: Row) -> dict[str, Any]:
    return {
        "system": {
            "name": facts.os.pretty_name or facts.os.id,
            "code": row.os,
            "package_manager": facts.package_manager,
            "package_manager_state": facts.broken or facts.lock_holder or "free",
        },
        "kernel": {
            "release": facts.kernel.release,
            "architecture": facts.kernel.architecture,
            "headers": facts.kernel.headers,
            "newer": newer_kernel(facts) or None,
            "secure_boot": facts.kernel.secure_boot,
        },
    }


def _gpus(facts: NodeFacts, catalog: Catalog) -> dict[str, Any]:
    names = {model.id: model.name for model in devices_of(catalog, [g.device for g in facts.gpus])}
    return {
        "gpus": [
            {
                "model": names[gpu.device],
                "slot": gpu.slot,
                "driver": gpu.driver,
                "responds": gpu.answers,
            }
            for gpu in facts.gpus
        ],
        "missing_gpus": missing_gpus(facts),
        "nvswitches": [switch.slot for switch in facts.nvswitches],
    }


def _driver(facts: NodeFacts) -> dict[str, Any]:
    module = facts.module_on_disk
    return {
        "driver": {
            "loaded": facts.loaded_driver,
            "installed": module.version if module else None,
            "modules": module.flavour if module else None,
            "library": facts.library,
        },
        "dkms": [
            {"name": b.name, "version": b.version, "kernel": b.kernel, "state": b.state}
            for b in facts.dkms
        ],
        "packages": [
            {"name": name, "version": package.version, "held": package.name in facts.holds}
            for name, package in sorted(facts.packages.items())
            if "nvidia" in name or name.startswith("cuda")
        ],
        "device_nodes": list(facts.device_nodes),
    }


def _work(facts: NodeFacts) -> dict[str, Any]:
    return {
        "runtimes": [
            {
                "name": runtime.name,
                "version": runtime.version,
                "unit": runtime.unit,
                "running": runtime.running,
                "containers": runtime.containers,
            }
            for runtime in facts.runtimes.values()
        ],
        "gpu_processes": [str(work) for work in facts.gpu_processes],
        "gpu_pods": facts.gpu_pods,
        "kubelet": facts.kubelet,
    }
