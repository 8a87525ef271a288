"""Reads the systemd units of a link of the chain. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.doctor.models import Link, Verdict
from gpufleet.facts.model import NodeFacts, Service


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit that should run and does not."""

    name: str
    failed: bool
    state: str


def read_units(
    facts: NodeFacts, names: tuple[str, ...], effect: str, *, failed: Verdict | None = None
) -> Link | None:
    """Read the units of a link that exist. A disabled unit that does not run is not a fault.
    `failed`: verdict of a unit that has failed, if not the severity of the check."""
    there = [facts.services[name] for name in names if name in facts.services]
    if not there:
        return None
    read = ", ".join(f"{each.name} {each.active}" for each in there)
    down = next((unit for each in there if (unit := _down(each))), None)
    if down is None:
        return Link(read)
    fault = f"{down.name} {down.state}: {effect}."
    return Link(read, fault, down.name, failed if down.failed else None)


def _down(service: Service) -> _Unit | None:
    if service.active == "failed":
        return _Unit(service.name, failed=True, state="has failed")
    if service.active == "inactive" and service.enabled == "enabled":
        return _Unit(service.name, failed=False, state="is enabled and does not run")
    if service.active == "activating":
        return _Unit(service.name, failed=False, state="is still starting")
    return None
