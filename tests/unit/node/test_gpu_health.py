"""Faults of GPUs in every view of a host: plan, status, doctor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.core.findings import Severity
from gpufleet.driver.role import ROLE as DRIVER
from gpufleet.driver.role import conclude_driver
from gpufleet.facts.gpu import Listed
from gpufleet.facts.model import DkmsModule, ModuleOnDisk, NodeFacts, Package, PciDevice
from gpufleet.node.catalog import load_catalog
from gpufleet.node.plan import NodePlan, plan_node
from gpufleet.node.settings import load_node_settings
from gpufleet.status.models import Row, SeenHost
from gpufleet.status.rows import row_of
from tests.unit.hosts import bare_host, converged_host, plan_for, record_of

SECOND = PciDevice("0000:65:00.0", 0x20B2, 0x030200, driver="nvidia")
UNLOADED = {"modules": {}, "module_on_disk": None}
UNBUILT = {**UNLOADED, "dkms": (DkmsModule("nvidia", "580.159.03", "", "added"),)}
LOST = {"taken": ("0000:17:00.0", SECOND.slot)}


def planned(facts: NodeFacts, **data: Any) -> NodePlan:
    settings, problems = load_node_settings({"toolkit_enabled": False, **data})
    assert settings, problems
    return plan_node(settings, facts, load_catalog(), facts.clock)


def shown(facts: NodeFacts, **data: Any) -> Row:
    settings, problems = load_node_settings({"toolkit_enabled": False, **data})
    assert settings, problems
    return row_of(SeenHost("gpu-07", ("gpu_nodes",), facts, settings=settings), load_catalog(), 0)


def codes(facts: NodeFacts, **data: Any) -> tuple[list[str], list[str]]:
    """The codes of the faults that a run repairs, and of those that it leaves."""
    faults = planned(facts, **data).faults
    return [each.code for each in faults.repaired], [each.code for each in faults.left]


@pytest.mark.parametrize(
    ("changes", "repaired"),
    [
        ({"modules": {}}, ["GF150"]),
        (UNLOADED, ["GF150"]),
        (UNBUILT, ["GF550"]),
        ({"modules": {"nvidia": "570.211.01", "nvidia_uvm": None}}, ["GF520"]),
        ({"library": "570.211.01"}, ["GF520"]),
    ],
)
def test_a_run_puts_a_driver_right_that_is_not_loaded(
    changes: dict[str, Any], repaired: list[str]
) -> None:
    """If gpufleet does not manage the driver, no step repairs it."""
    facts = converged_host(**changes)
    assert codes(facts) == (repaired, [])
    assert codes(facts, driver_enabled=False) == ([], repaired)


def test_no_reboot_repairs_packages_beside_the_operators_driver() -> None:
    """Unattended upgrades moved the host's library: github.com/pando85/homelab/pull/4110."""
    facts = converged_host(library="570.211.01", operator_driver=True)
    (fault,) = planned(facts, driver_enabled=False).faults.left
    assert fault.code == "GF520"
    assert "Remove the driver's packages" in fault.remedy
    assert "reboot" not in fault.remedy


def test_a_library_of_another_package_is_named_for_removal() -> None:
    """https://github.com/Syllo/nvtop/issues/125: a tool's dependency installed a second library."""
    facts = converged_host(library="535.183.01")
    package = Package("libnvidia-compute-535", "535.183.01-0ubuntu0.22.04.1", "amd64")
    facts = replace(facts, packages={**facts.packages, package.name: package})
    (fault,) = planned(facts).faults.repaired
    assert "Remove libnvidia-compute-535 from the host" in fault.remedy


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        (LOST, ["GF725"]),
        ({"pci": (replace(SECOND, answers=False),)}, ["GF725"]),
        ({"pci": (SECOND, replace(SECOND, slot="0000:66:00.0", driver=None))}, ["GF727"]),
        ({"listed": Listed(0, "Driver/library version mismatch")}, ["GF151"]),
        ({"listed": Listed(0, "it did not answer within 60 s")}, ["GF151"]),
        ({"listed": Listed(0)}, ["GF151"]),
        ({"pci": ()}, ["GF152"]),
        ({**LOST, "listed": Listed(1, "GPU is lost")}, ["GF725"]),
    ],
)
def test_no_step_puts_a_lost_gpu_right(changes: dict[str, Any], left: list[str]) -> None:
    facts = converged_host(**changes)
    assert codes(facts) == ([], left)
    plan = planned(facts)
    assert plan.blockers == (), "the steps of a run are not kept from the host"
    row = shown(facts)
    assert "gpu-fault" in row.flags
    assert "blocked" not in row.flags
    faults = {each.code for each in plan.all_findings}
    assert set(left) <= faults & {note.finding.code for note in row.notes}


@pytest.mark.parametrize("listed", [None, Listed(1), Listed(2)])
def test_a_healthy_host_has_no_fault(listed: Listed | None) -> None:
    facts = converged_host(listed=listed)
    assert codes(facts) == ([], [])
    assert codes(facts, node_gpus=1) == ([], [])
    assert "gpu-fault" not in shown(facts).flags


def test_a_host_has_the_gpus_that_it_is_to_have() -> None:
    """The expected number of GPUs is node_gpus, or else the number in the record."""
    facts = converged_host()
    assert codes(facts, node_gpus=2) == ([], ["GF152"])
    eight = replace(facts, provenance=record_of(driver={"gpus": 8}))
    assert codes(eight)[1] == ["GF152"]
    assert codes(eight, node_gpus=1)[1] == [], "cards were taken out on purpose"
    assert codes(replace(eight, **LOST), node_gpus=2)[1] == ["GF725"], "said once"
    assert [each.code for each in planned(bare_host(pci=())).all_findings] == ["GF501"]
    gone = planned(bare_host(pci=()), node_gpus=8)
    assert [each.code for each in gone.all_findings] == ["GF152"]


def test_gpus_of_virtual_machines_are_no_fault() -> None:
    facts = converged_host(modules={}, pci=(replace(SECOND, driver="vfio-pci"),))
    assert codes(facts, driver_enabled=False) == ([], [])


def test_a_host_without_a_driver_has_no_fault() -> None:
    assert codes(bare_host()) == ([], [])


def test_a_fault_is_a_warning() -> None:
    found = planned(converged_host(**UNBUILT)).faults.all
    assert {each.severity for each in found} == {Severity.WARNING}


def test_status_says_that_the_driver_is_not_loaded() -> None:
    facts = converged_host(modules={}, module_on_disk=ModuleOnDisk("580.159.03", "NVIDIA"))
    assert shown(facts).driver_text == "580.159.03 (not loaded)"
    assert shown(converged_host()).driver_text == "580.159.03"


def test_a_run_records_the_most_gpus_that_it_found() -> None:
    settings, _ = load_node_settings({})
    assert settings
    two = bare_host(pci=(SECOND, replace(SECOND, slot="0000:66:00.0")))

    def recorded(facts: NodeFacts) -> int:
        return conclude_driver(settings.of(DRIVER), facts, plan_for(facts)).entry.gpus  # type: ignore[attr-defined]

    assert recorded(two) == 2
    assert recorded(replace(two, provenance=record_of(driver={"gpus": 8}))) == 8
