"""Reads the systemd units of a link of the chain. Pure."""

from __future__ import annotations

from gpufleet.doctor.models import Link, Verdict
from gpufleet.facts.model import NodeFacts, Service

# states of a unit that should run and does not -> words
_DOWN = {
    "failed": "has failed",
    "inactive": "is enabled and does not run",
    "activating": "is still starting",
}


def read_units(
    facts: NodeFacts, names: tuple[str, ...], effect: str, *, failed: Verdict | None = None
) -> Link | None:
    """Read the units of a link that exist. A disabled unit that does not run is not a fault.
    `failed`: verdict of a unit that has failed, if not the severity of the check."""
    there = [facts.services[name] for name in names if name in facts.services]
    if not there:
        return None
    read = ", ".join(f"{each.name} {each.active}" for each in there)
    down = next((each for each in there if _is_down(each)), None)
    if down is None:
        return Link(read)
    fault = f"{down.name} {_DOWN[down.active]}: {effect}."
    return Link(read, fault, down.name, failed if down.active == "failed" else None)


def _is_down(unit: Service) -> bool:
    return unit.active in _DOWN and (unit.active != "inactive" or unit.enabled == "enabled")
