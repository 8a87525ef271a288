"""The plan of the GPUs: what differs, what is refused before a change, what stays untouched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gpu_host import SLOTS, applied_host, blockers, gpu_host, gpu_plan, node_plan, state_of

from gpufleet.facts.gpu import LAYOUT_FILE
from gpufleet.facts.model import GpuProcess, NodeFacts, Service
from gpufleet.gpu.plan import changes_devices
from gpufleet.gpu.role import ROLE
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import plan_steps
from gpufleet.node.removal import plan_removal
from gpufleet.node.settings import load_node_settings
from tests.unit.hosts import bare_host

pytestmark = pytest.mark.claim(
    "Layouts, limits and resets that cannot work are refused before a GPU is changed.", level=1
)

WHOLE = state_of(SLOTS[0])
DIVIDED = state_of(SLOTS[0], ("3g.40gb", "3g.40gb"))
LAYOUT: dict[str, Any] = {"gpu_mig": "3g.40gb:2", "gpu_allow_reset": True}
TRAIN = GpuProcess(9, "train", ("/dev/nvidia0", "/dev/nvidia-uvm"))


def test_without_a_key_nothing_is_planned() -> None:
    assert node_plan(gpu_host(WHOLE)).of(ROLE) is None


def test_only_gpus_that_differ_change() -> None:
    plan = gpu_plan(gpu_host(DIVIDED, state_of(SLOTS[1])), **LAYOUT)
    assert [change.index for change in plan.changes] == [1]
    assert (plan.before, plan.after) == ("2 layouts", "3g.40gb:2")


def test_an_applied_layout_is_converged() -> None:
    facts = gpu_host(WHOLE)
    done = applied_host(facts, DIVIDED, **LAYOUT)
    assert not gpu_plan(done, **LAYOUT).applies
    assert not [step for step in plan_steps(node_plan(done, **LAYOUT)) if "gpu:" in step]


@pytest.mark.parametrize(
    "now",
    [
        state_of(SLOTS[0]),
        state_of(SLOTS[0], ("3g.40gb",)),
        state_of(SLOTS[0], mig=True, pending_mig=True),
        replace(DIVIDED, pending_mig=False),
    ],
)
def test_a_lost_or_pending_layout_is_made_again(now: Any) -> None:
    facts = applied_host(gpu_host(WHOLE), now, **LAYOUT)
    plan = gpu_plan(facts, **LAYOUT)
    assert plan.applies
    assert changes_devices(plan)


def test_a_unit_that_failed_or_is_disabled_runs_again() -> None:
    done = applied_host(gpu_host(WHOLE), DIVIDED, **LAYOUT)
    for active, enabled in (("failed", "enabled"), ("active", "disabled")):
        unit = Service("gpufleet-gpus.service", "loaded", active, enabled)
        facts = replace(done, services={"gpufleet-gpus.service": unit})
        assert gpu_plan(facts, **LAYOUT).applies


def test_a_host_without_a_driver_gets_its_layout_when_the_driver_is_loaded() -> None:
    plan = gpu_plan(bare_host(), **LAYOUT)
    assert plan.applies
    assert not plan.known
    assert plan.before is None
    assert plan.lines == {SLOTS[0]: "mig=3g.40gb,3g.40gb reset=1"}


def test_a_driver_change_makes_the_layout_again() -> None:
    done = applied_host(gpu_host(WHOLE), DIVIDED, **LAYOUT)
    newer = {"driver_version": "595.91.07", "driver_branch": "595", "driver_allow_change": True}
    assert gpu_plan(done, **LAYOUT, **newer).reloads
    assert "GF154" not in {each.code for each in blockers(done, **LAYOUT, **newer)}
    kept = gpu_plan(done, **newer)  # the keys are no longer in the inventory
    assert kept.applies
    assert kept.lines == {SLOTS[0]: "mig=3g.40gb,3g.40gb reset=1"}


def test_a_driver_change_spares_a_layout_that_only_another_gpu_has_from_gpu_mig() -> None:
    own = state_of(SLOTS[1], ("3g.40gb", "2g.20gb"))
    data: dict[str, Any] = {"gpu_mig": {0: "3g.40gb:2"}, "gpu_allow_reset": True}
    done = applied_host(gpu_host(WHOLE, own), DIVIDED, own, **data)
    newer = {"driver_version": "595.91.07", "driver_branch": "595", "driver_allow_change": True}
    [lost] = [each for each in blockers(done, **data, **newer) if each.code == "GF154"]
    assert "2 MIG devices" in lost.message


def test_a_removed_key_changes_nothing_and_is_reported() -> None:
    done = applied_host(gpu_host(WHOLE), DIVIDED, **LAYOUT)
    assert not gpu_plan(done).applies
    assert "GF492" in {each.code for each in node_plan(done).all_findings}


@pytest.mark.parametrize(
    ("facts", "data", "code"),
    [
        (gpu_host(WHOLE), {"gpu_mig": "1g.5gb:7"}, "GF481"),
        (gpu_host(WHOLE), {"gpu_mig": "4g.40gb:2"}, "GF481"),
        (gpu_host(WHOLE, device=0x1EB8), {"gpu_mig": "1g.10gb"}, "GF481"),
        (gpu_host(WHOLE), {"gpu_mig": {1: "1g.10gb"}}, "GF481"),
        (gpu_host(WHOLE), {"gpu_power_limit": 401}, "GF486"),
        (gpu_host(WHOLE), {"gpu_power_limit": 99}, "GF486"),
        (gpu_host(WHOLE), {"gpu_clocks": [1000, 1411]}, "GF486"),
        (gpu_host(WHOLE), {"gpu_memory_clocks": [1594, 1594]}, "GF486"),
        (gpu_host(WHOLE), {"gpu_mig": "3g.40gb:2"}, "GF489"),
        (gpu_host(DIVIDED), {"gpu_mig": "off"}, "GF489"),
        (gpu_host(WHOLE), {"gpu_ecc": False}, "GF489"),
        (gpu_host(WHOLE, gpu_processes=(TRAIN,)), LAYOUT, "GF488"),
        (gpu_host(WHOLE, gpu_pods=1), LAYOUT, "GF488"),
        (gpu_host(WHOLE, gpu_containers=1), LAYOUT, "GF488"),
        (gpu_host(WHOLE, operator_driver=True), LAYOUT, "GF487"),
        (gpu_host(state_of(SLOTS[0], ecc=None)), {"gpu_ecc": True}, "GF486"),
        (gpu_host(state_of(SLOTS[0], power=None)), {"gpu_power_limit": 300}, "GF486"),
        (gpu_host(state_of(SLOTS[0], compute_mode="")), {"gpu_compute_mode": "default"}, "GF486"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused(facts: NodeFacts, data: dict[str, Any], code: str) -> None:
    found = blockers(facts, **data)
    assert code in {each.code for each in found}
    assert all(each.remedy for each in found)


def test_an_ecc_mode_that_waits_for_a_reset_is_taken_back_without_one() -> None:
    facts = gpu_host(state_of(SLOTS[0], pending_ecc=False), gpu_processes=(TRAIN,))
    plan = gpu_plan(facts, gpu_ecc=True)
    assert [each.text for each in plan.changes] == ["GPU 0: ecc on, off after a reset -> on"]
    assert not plan.resets


def test_work_is_found_by_the_device_node_of_a_gpu_not_by_its_index() -> None:
    first, second = state_of(SLOTS[0], minor=1), state_of(SLOTS[1], minor=0)
    facts = gpu_host(first, second, gpu_processes=(TRAIN,))
    data: dict[str, Any] = {"gpu_allow_reset": True}
    assert not blockers(facts, gpu_mig={0: "3g.40gb:2"}, **data)
    assert [each.code for each in blockers(facts, gpu_mig={1: "3g.40gb:2"}, **data)] == ["GF488"]


def test_a_driver_below_the_gpus_minimum_is_refused() -> None:
    facts = gpu_host(WHOLE, device=0x2335)  # H200: 550.90.07
    old = {"driver_version": "550.54.15", "driver_branch": "550", "driver_allow_change": True}
    assert "GF484" in {each.code for each in blockers(facts, gpu_mig="1g.18gb:7", **old)}
    assert "GF484" not in {each.code for each in blockers(facts, gpu_mig="1g.18gb:7")}


@pytest.mark.parametrize(("active", "enabled"), [("active", "disabled"), ("inactive", "enabled")])
def test_nvidias_mig_manager_is_another_master(active: str, enabled: str) -> None:
    unit = Service("nvidia-mig-manager.service", "loaded", active, enabled)
    facts = gpu_host(WHOLE, services={unit.name: unit})
    assert "GF487" in {each.code for each in blockers(facts, **LAYOUT)}
    assert "GF487" not in {each.code for each in blockers(facts, gpu_power_limit=300)}


def test_a_mig_manager_in_a_pod_is_another_master() -> None:
    facts = gpu_host(WHOLE)
    assert facts.listed
    managed = replace(facts, listed=replace(facts.listed, mig_manager=True))
    assert "GF487" in {each.code for each in blockers(managed, **LAYOUT)}


def test_limits_alone_leave_the_layout_as_it_is() -> None:
    plan = gpu_plan(gpu_host(DIVIDED), gpu_power_limit=300)
    assert (plan.before, plan.after) == ("3g.40gb:2", "3g.40gb:2")
    assert plan.lines == {SLOTS[0]: "power=300"}


def test_work_on_another_gpu_and_limits_are_no_obstacle() -> None:
    both = (DIVIDED, state_of(SLOTS[1]))
    facts = gpu_host(*both, gpu_processes=(TRAIN,))
    assert not blockers(facts, gpu_mig={1: "3g.40gb:2"}, gpu_allow_reset=True)
    assert not blockers(facts, gpu_power_limit=300)


def test_hopper_needs_no_reset() -> None:
    hopper, ampere = gpu_host(WHOLE, device=0x2330), gpu_host(WHOLE)
    assert not blockers(hopper, gpu_mig="3g.40gb:2")
    assert not gpu_plan(hopper, gpu_mig="3g.40gb:2").resets
    assert gpu_plan(ampere, **LAYOUT).resets == (0,)


def test_instances_change_without_a_reset_in_mig_mode() -> None:
    assert not blockers(gpu_host(DIVIDED), gpu_mig="1g.10gb:7")


def test_the_default_power_limit_is_the_gpus_own() -> None:
    lowered = gpu_host(state_of(SLOTS[0], power=300.0))
    change = gpu_plan(lowered, gpu_power_limit="default").changes[0]
    assert change.differs == {"power": ("300 W", "400 W")}
    assert not gpu_plan(gpu_host(WHOLE), gpu_power_limit="default").changes


def test_the_removal_returns_gpus_first_and_spares_work() -> None:
    done = applied_host(gpu_host(WHOLE), DIVIDED, **LAYOUT)
    settings, _ = load_node_settings({})
    assert settings
    plan = plan_removal(settings, done, load_catalog())
    assert plan.steps()[0] == "removal: return the GPUs to whole GPUs with default limits"
    assert LAYOUT_FILE in plan.paths
    busy = plan_removal(settings, replace(done, gpu_processes=(TRAIN,)), load_catalog())
    assert "GF488" in {each.code for each in busy.blockers}
