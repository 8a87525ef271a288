"""What an upgrade left on a host that it has not ended. Pure."""

from __future__ import annotations

from datetime import datetime, timezone

from gpufleet.core.findings import Finding
from gpufleet.facts.model import NodeFacts
from gpufleet.status.findings import UPGRADE
from gpufleet.upgrade.host_state import FILE, parse_state


def upgrade_left(facts: NodeFacts) -> Finding | None:
    """The upgrade that the host is in, by the state file of the run on the host."""
    try:
        state = parse_state(facts.texts.get(FILE, ""))
    except ValueError:
        return UPGRADE(what=f"{FILE} has no valid state of a run")
    if state is None or (state.ended and not state.out_of_service):
        return None
    since = datetime.fromtimestamp(state.since, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    what = f"run {state.run}, {state.kind} to {state.target}: {state.phase.value} since {since}"
    return UPGRADE(what=f"{what}; {state.why}" if state.why else what)
