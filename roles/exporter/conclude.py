"""What a run of the exporter role learned: for the record on the host and for the report."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from gpufleet.exporter.model import ExporterPlan
from gpufleet.exporter.record import ExporterEntry
from gpufleet.node.operations.node import Node
from gpufleet.node.operations.provenance import Learned
from gpufleet.packages.added import carried
from gpufleet.packages.operations.transaction import Found


def conclude(node: Node, plan: ExporterPlan, found: Sequence[Found | None] = ()) -> Learned:
    """The provenance of the exporter; also completes the host's line in the report."""
    old = node.facts.provenance.entry(ExporterEntry)
    packages = _versions(node, plan, found)
    version = plan.choice.version
    exporter = found[-1] if found else None
    if plan.mode == "systemd" and exporter:
        version = exporter.transaction.version
    elif plan.before:
        version = plan.before
    node.saw("exporter", version)
    if node.waits_for_reboot:
        need = "run gpu_node again after the reboot: the exporter could not be started"
        node.report.needs += [need] if need not in node.report.needs else []
    entry = ExporterEntry(
        mode=plan.mode,
        version=version,
        dcgm=plan.choice.dcgm,
        image=plan.choice.image if plan.mode == "docker" else None,
        listen=plan.address,
        metrics=f"http://{plan.reachable}/metrics",
        units=list(plan.units),
        # what runs, and over which driver: none of it before the exporter could be started
        configuration=None if node.waits_for_reboot else plan.configuration,
        driver=node.driver_version,
        # of an exporter that is a container now, packages stay until they are removed
        packages=packages or old.packages,
        held=node.settings.exporter.hold if packages else old.held,
    )
    return Learned(carried(entry, old), _files(plan))


def _versions(node: Node, plan: ExporterPlan, found: Sequence[Found | None]) -> dict[str, str]:
    there = node.facts.packages
    versions = {
        name: there[name].version
        for family in plan.packages
        for name in family.names
        if name in there
    }
    for each in found:
        versions |= dict(each.transaction.install) if each else {}
    return versions


def _files(plan: ExporterPlan) -> dict[str, str]:
    """All of its files are under gpufleet's own name, so they are gpufleet's."""
    return {file.path: hashlib.sha256(file.data).hexdigest() for file in plan.wanted_files}
