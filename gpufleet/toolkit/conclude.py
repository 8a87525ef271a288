"""Results of the toolkit role for the record on the host and for the report."""

from __future__ import annotations

from gpufleet.core.node_roles import RuntimeState
from gpufleet.facts.model import NodeFacts
from gpufleet.packages.holds import still_held
from gpufleet.packages.transaction import PackageTransaction
from gpufleet.role.result import RoleResult, file_digests
from gpufleet.toolkit.findings.results import RUNTIME_TO_DEFINE
from gpufleet.toolkit.plan import ToolkitPlan
from gpufleet.toolkit.record import ToolkitEntry
from gpufleet.toolkit.runtime_model import RuntimePlan
from gpufleet.toolkit.settings import ToolkitSettings


def conclude_toolkit(
    settings: ToolkitSettings,
    facts: NodeFacts,
    plan: ToolkitPlan,
    driver: str | None,
    found: PackageTransaction | None = None,
) -> RoleResult:
    """The host's state after the run. `driver`: the loaded version, or None before a reboot."""
    repository = plan.repository.repository
    old = facts.provenance.entry(ToolkitEntry)
    entry = plan.record(driver, plan.transaction.versions(found, old)).model_copy(
        update={
            "repository": repository.url if repository else None,
            "keyring": repository.keyring if repository else None,
            "source_file": repository.file if repository else None,
            "held": settings.hold or still_held(old, facts, moved=found is not None),
        }
    )
    # the repository's source and login that gpufleet wrote, now or earlier
    recorded = facts.provenance.files
    written = (
        file
        for file in (plan.repository.source, plan.repository.login)
        if file and (file.path in recorded or not file.is_on(facts))
    )
    return RoleResult(
        entry,
        file_digests(written),
        plan.target,
        needs=tuple(f"restart {r.unit}: {r.reason}" for r in plan.runtimes if r.postponed),
        runtimes={runtime.key: _state(runtime) for runtime in plan.runtimes},
        solved=(RUNTIME_TO_DEFINE.code,),
    )


def _state(runtime: RuntimePlan) -> RuntimeState:
    if not runtime.managed:
        return "not managed"
    if not runtime.running:
        return "not running"
    if runtime.postponed:
        return "restart pending"
    if runtime.change or runtime.activation != "none":
        return "configured"
    return "unchanged"
