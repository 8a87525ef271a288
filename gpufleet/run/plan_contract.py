"""The part of a host's plan that `apply --plan` must match, and how two plans differ. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.visible import one_line
from gpufleet.run import findings

Hosts = Mapping[str, Mapping[str, Any]]  # by name, as in the report of a preview
MAX_SHOWN_STEPS = 3  # of a plan that differs
OF_PLAN = ("steps", "versions", "releases", "digests")
OF_IMPACT = ("sources", "files", "reboot", "unloads_driver")  # the rest depends on current work


def contract_of_host(host: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a host's report that a run must match."""
    plan, impact = host["plan"], host["plan"].get("impact", {})
    kept = {name: plan[name] for name in OF_PLAN if name in plan}
    kept |= {name: impact[name] for name in OF_IMPACT if name in impact}
    return {"status": host["status"], **kept}


def plan_differences(planned: Hosts, now: Hosts) -> list[tuple[str, Finding]]:
    """Each host and cluster with a different plan now, and a finding. `now`: from a report."""
    found = []
    for name in dict.fromkeys((*planned, *now)):
        before = planned.get(name)
        after = contract_of_host(now[name]) if name in now else None
        if before != after:
            then, today = _said(before, after), _said(after, before)
            found.append((name, findings.PLAN_DIFFERS(planned=then, now=today)))
    return found


def _said(this: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> str:
    """The part of one plan that the other plan lacks, or how it differs if it lacks nothing."""
    if this is None:
        return "not in the plan"
    other = other or {}
    steps = [one_line(step) for step in this["steps"] if step not in other.get("steps", ())]
    if steps:
        more = len(steps) - MAX_SHOWN_STEPS
        return "; ".join(steps[:MAX_SHOWN_STEPS]) + (f"; and {more} more" if more > 0 else "")
    if this["status"] != other.get("status"):
        return str(this["status"])
    if any(step not in this["steps"] for step in other["steps"]):
        return "no such step"
    if this["steps"] != other["steps"]:
        return "the same steps in another order or number"
    differing = [name for name in {**this, **other} if this.get(name) != other.get(name)]
    return f"the same steps with other {' and '.join(differing)}"
