"""The metrics of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gpufleet.core import metrics
from gpufleet.host.upgrade_state import FAILING, HostState, Phase
from gpufleet.upgrade.models import Plan

UPGRADE_METRICS_PREFIX = "gpufleet_upgrade"


def upgrade_metrics_text(
    plan: Plan, states: Mapping[str, HostState], inventory: str, *, running: bool
) -> str:
    """The metrics of a run. `running`: True if a process executes it."""
    run = {"run": plan.run, "kind": plan.kind, "subject": plan.subject}
    counts = Counter(state.phase for state in states.values())
    out = sum(state.out_of_service for state in states.values())
    failed = sum(state.phase in FAILING for state in states.values())
    last = max((state.since for state in states.values()), default=0.0)
    families = [
        ("hosts", "Hosts of the run by state.",
         [({**run, "state": phase.value}, float(counts[phase])) for phase in Phase]),
        ("out_of_service", "Hosts that the run has taken out of service.", [(run, float(out))]),
        ("left_out", "Hosts that the run leaves out.", [(run, float(len(plan.left_out)))]),
        ("failures", "Hosts whose change failed.", [(run, float(failed))]),
        ("running", "Whether a process carries the run out.", [(run, float(running))]),
        ("info", "The run.", [({**run, "inventory": inventory}, 1.0)]),
        ("last_event_timestamp_seconds", "When the state of a host last changed.",
         [(run, last)]),
    ]  # fmt: skip
    return metrics.gauges_text(UPGRADE_METRICS_PREFIX, families)
