"""Hosts with GPUs in a known state, shared by the tests of the gpu role."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.facts.gpu import GpuState, Listed
from gpufleet.facts.model import ManagedFile, NodeFacts, PciDevice, Service
from gpufleet.gpu.files import GPUS_UNIT
from gpufleet.gpu.plan import GpuPlan
from gpufleet.gpu.role import ROLE, conclude_gpus
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.record_merge import with_added_packages
from gpufleet.node.settings import load_node_settings
from tests.unit.hosts import converged_host, record_of

SLOTS = ("0000:17:00.0", "0000:65:00.0")


def state_of(slot: str, devices: tuple[str, ...] = (), **changes: Any) -> GpuState:
    """A GPU of 400 W that accepts 100 to 400 W."""
    on = bool(devices)
    state = GpuState(
        slot, on, on, devices, 400.0, 400.0, 100.0, 400.0, 1410, 1593, "Default", True, True
    )
    return replace(state, **changes)


def gpu_host(*states: GpuState, device: int = 0x20B2, **changes: Any) -> NodeFacts:
    """A host with the driver loaded and a GPU for each state."""
    gpus = tuple(PciDevice(each.slot, device, 0x030200, "nvidia") for each in states)
    listed = Listed(len(states), mig_devices=sum(len(s.devices) for s in states), states=states)
    return converged_host(pci=gpus, listed=listed, **changes)


def node_plan(facts: NodeFacts, **data: Any) -> NodePlan:
    settings, problems = load_node_settings({"toolkit_enabled": False, **data})
    assert settings, problems
    return plan_node(settings, facts, load_catalog(), facts.clock)


def gpu_plan(facts: NodeFacts, **data: Any) -> GpuPlan:
    plan = node_plan(facts, **data).of(ROLE)
    assert plan, node_plan(facts, **data).all_findings
    return plan


def blockers(facts: NodeFacts, **data: Any) -> list[Finding]:
    return [each for each in node_plan(facts, **data).all_findings if each.blocks]


def applied_host(facts: NodeFacts, *states: GpuState, **data: Any) -> NodeFacts:
    """The host after a run with these keys: its files, its record and its unit are there."""
    plan = gpu_plan(facts, **data)
    result = with_added_packages(facts.provenance, conclude_gpus(plan))
    files = {file.path: ManagedFile(file.path, str(file.content)) for file in plan.wanted_files}
    unit = Service(GPUS_UNIT, "loaded", "active", "enabled")
    return replace(
        facts,
        files={**facts.files, **files},
        services={**facts.services, GPUS_UNIT: unit},
        provenance=record_of(**{**facts.provenance.as_json(), **result.as_json()}),
        listed=Listed(len(states), mig_devices=sum(len(s.devices) for s in states), states=states),
    )
