"""The installed flavour of the kernel modules stays unless a setting asks for the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.facts.model import GpuProcess, ModuleOnDisk, NodeFacts, Package
from gpufleet.facts.record import NO_RECORD
from tests.unit.hosts import converged_host, plan_for

WORK = GpuProcess(700, "python3", ("/dev/nvidia0",))


def working(flavour: str, source: str) -> NodeFacts:
    """A host on which another tool installed a driver of this flavour, under GPU work."""
    facts = converged_host()
    bare = replace(facts, packages={}, module_on_disk=None)
    names = plan_for(bare, driver_modules=flavour, driver_source=source).packages
    revision = "0ubuntu1" if source == "nvidia" else "0ubuntu0.22.04.1"
    there = {name: Package(name, f"580.159.03-{revision}", "amd64") for name in names}
    licence = "NVIDIA" if flavour == "proprietary" else "Dual MIT/GPL"
    return replace(
        facts, packages=there, holds=frozenset(), provenance=NO_RECORD, gpu_processes=(WORK,),
        module_on_disk=ModuleOnDisk("580.159.03", licence),
    )  # fmt: skip


@pytest.mark.parametrize("source", ["nvidia", "distro"])
@pytest.mark.parametrize("flavour", ["open", "proprietary"])
def test_a_driver_that_works_keeps_its_modules(flavour: str, source: str) -> None:
    plan = plan_for(working(flavour, source), driver_source=source)
    assert (plan.action, plan.choice.modules) == ("none", flavour)


def test_another_branch_gets_its_own_default() -> None:
    facts = working("proprietary", "nvidia")
    assert plan_for(facts, driver_branch="590").choice.modules == "open"
