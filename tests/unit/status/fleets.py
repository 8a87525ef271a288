"""Fleets made of facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpufleet.facts.model import NodeFacts
from gpufleet.node.catalog import load_catalog
from gpufleet.node.settings import load_node_settings
from gpufleet.run.findings import UNREACHABLE
from gpufleet.status.models import FleetStatus, Row, SeenHost
from gpufleet.status.rows import fleet_of, row_of
from tests.unit.hosts import bare_host, converged_host

NOW = 1_795_600_000  # 2026-11-25
NEWEST = "580.178.04"
DRIVER_ALONE = {"toolkit_enabled": False}
HOSTILE = "</title><script>alert('x')</script> & [bold]"


def seen(name: str, facts: NodeFacts, **data: Any) -> SeenHost:
    """A host that answered, with the data of its inventory."""
    settings, problems = load_node_settings({**DRIVER_ALONE, **data})
    return SeenHost(name, ("gpu_nodes",), facts, settings=settings, problems=tuple(problems))


def healthy(version: str = NEWEST, **changes: Any) -> NodeFacts:
    """A host with a bound GPU and a correct clock."""
    facts = converged_host(version, clock=NOW, **changes)
    return replace(facts, pci=tuple(replace(gpu, driver="nvidia") for gpu in facts.pci))


def bare(**changes: Any) -> NodeFacts:
    return bare_host(clock=NOW, **changes)


def silent(name: str) -> SeenHost:
    return SeenHost(name, problem=UNREACHABLE(host=name, cause="timed out"))


def row(facts: NodeFacts, **data: Any) -> Row:
    """The row of a single host with these facts."""
    return row_of(seen("gpu-07", facts, **data), load_catalog(), NOW)


def fleet(*hosts: SeenHost, clusters: tuple[str, ...] = ()) -> FleetStatus:
    return fleet_of("inventories/prod.py", hosts, clusters, load_catalog(), NOW)


def hostile() -> FleetStatus:
    """Hosts, an inventory and a cluster with malicious names and versions."""
    facts = healthy()
    worse = replace(
        facts,
        kernel=replace(facts.kernel, release=f"5.15\x1b[2J{HOSTILE}"),
        modules={"nvidia": f"580.1{HOSTILE}\n=cmd()"},
        lock_holder=HOSTILE,
    )
    hosts = [seen(f"=gpu{HOSTILE}\r\n\x1b]0;x\x07", worse), seen("@local", facts)]
    catalog = load_catalog()
    return fleet_of(f"inventories/{HOSTILE}.py", hosts, (f"lab{HOSTILE}",), catalog, NOW)
