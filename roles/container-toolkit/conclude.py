"""What a run of the toolkit role learned: for the record on the host and for the report."""

from __future__ import annotations

import hashlib

from gpufleet.node.operations.node import Node
from gpufleet.node.operations.provenance import Learned
from gpufleet.packages.added import carried
from gpufleet.packages.operations.transaction import Found
from gpufleet.run.report import RuntimeState
from gpufleet.toolkit.plan import ToolkitPlan
from gpufleet.toolkit.record import ToolkitEntry
from gpufleet.toolkit.runtime_model import RuntimePlan


def conclude(node: Node, plan: ToolkitPlan, found: Found | None = None) -> Learned:
    """The provenance of the toolkit; also completes the host's line in the report."""
    node.saw("toolkit", plan.target)
    for runtime in plan.runtimes:
        node.report.runtimes[runtime.key] = _state(runtime)
        need = f"restart {runtime.unit}: {runtime.reason}"
        if runtime.postponed and need not in node.report.needs:
            node.report.needs.append(need)
    repository = plan.repository.repository
    entry = plan.record(node.driver_version, _versions(node, plan, found)).model_copy(
        update={
            "repository": repository.url if repository else None,
            "keyring": repository.keyring if repository else None,
            "source_file": repository.file if repository else None,
            "held": node.settings.toolkit.hold,
        }
    )
    old = node.facts.provenance.entry(ToolkitEntry)
    return Learned(carried(entry, old), _files(node, plan))


def _state(runtime: RuntimePlan) -> RuntimeState:
    if not runtime.managed:
        return "not managed"
    if not runtime.running:
        return "not running"
    if runtime.postponed:
        return "waits for a restart"
    if runtime.change or runtime.activation != "none":
        return "configured"
    return "as it was"


def _versions(node: Node, plan: ToolkitPlan, found: Found | None) -> dict[str, str]:
    if found:
        return dict(found.transaction.install)
    there = node.facts.packages
    return {name: there[name].version for name in plan.packages if name in there}


def _files(node: Node, plan: ToolkitPlan) -> dict[str, str]:
    """The repository's source and login, where gpufleet wrote them now or earlier, with sha256."""
    recorded = node.facts.provenance.files
    return {
        file.path: hashlib.sha256(file.data).hexdigest()
        for file in (plan.repository.source, plan.repository.login)
        if file and (file.path in recorded or not file.is_on(node.facts))
    }
