"""The installed flavour of the kernel modules stays unless a setting asks for the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufleet.facts.model import GpuProcess, ModuleOnDisk, NodeFacts, Package
from gpufleet.facts.record import EMPTY_RECORD
from tests.unit.hosts import converged_host, plan_for, record_of

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
        facts, packages=there, holds=frozenset(), provenance=EMPTY_RECORD, gpu_processes=(WORK,),
        module_on_disk=ModuleOnDisk("580.159.03", licence), loaded_flavour=flavour,
    )  # fmt: skip


@pytest.mark.parametrize("source", ["nvidia", "distro"])
@pytest.mark.parametrize("flavour", ["open", "proprietary"])
def test_a_driver_that_works_keeps_its_modules(flavour: str, source: str) -> None:
    plan = plan_for(working(flavour, source), driver_source=source)
    assert (plan.action, plan.choice.modules) == ("none", flavour)


def test_another_branch_gets_its_own_default() -> None:
    facts = working("proprietary", "nvidia")
    assert plan_for(facts, driver_branch="590").choice.modules == "open"


OTHER = {"open": "proprietary", "proprietary": "open"}


@pytest.mark.parametrize("flavour", ["open", "proprietary"])
@pytest.mark.parametrize("pods", [0, 2])
def test_the_other_flavour_replaces_a_driver_of_the_same_version(flavour: str, pods: int) -> None:
    facts = replace(working(flavour, "nvidia"), gpu_pods=pods)
    plan = plan_for(facts, driver_modules=OTHER[flavour])
    assert (plan.action, plan.target, plan.load) == ("replace", "580.159.03", True)
    assert plan.stale_module
    codes = {finding.code for finding in plan.findings}
    assert {"GF512", "GF530"} <= codes, "it ends the work"


def test_an_idle_driver_gets_the_other_flavour_without_a_blocker() -> None:
    facts = replace(working("proprietary", "nvidia"), gpu_processes=())
    plan = plan_for(facts, driver_modules="open")
    assert plan.action == "replace"
    assert not any(finding.blocks for finding in plan.findings)


def test_a_module_of_the_other_flavour_stays_loaded_only_until_the_next_run() -> None:
    """The packages were replaced, and the old module was in use."""
    facts = replace(working("open", "nvidia"), loaded_flavour="proprietary")
    plan = plan_for(facts)
    assert (plan.action, plan.load, plan.stale_module) == ("none", True, True)
    assert "GF530" in {finding.code for finding in plan.findings}


def test_the_flavour_stays_while_no_module_is_built_for_the_kernel() -> None:
    facts = replace(working("proprietary", "nvidia"), module_on_disk=None)
    record = record_of(
        driver={
            "packages": dict.fromkeys(facts.packages, "580.159.03"),
            "branch": "580",
            "modules": "proprietary",
        }
    )
    rebooted = replace(facts, modules={}, loaded_flavour=None, provenance=record)
    for there in (facts, rebooted):
        plan = plan_for(there)
        assert (plan.action, plan.choice.modules) == ("repair", "proprietary")
