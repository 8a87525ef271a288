"""A run that changes the layout of GPUs, against hosts and a cluster in memory."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.gpu.findings import GPU_HAS_WORK
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.run.report import HostReport
from gpufleet.upgrade.operations.result import step_result
from gpufleet.upgrade.show import upgrade_plan_text
from tests.fakes.upgrade_fleet import World, fleet_of

pytestmark = pytest.mark.claim(
    "MIG and ECC of nodes in use change as a driver does: canaries, drain, check, roll-back.",
    level=1,
)

WHOLE, SMALL = "0-1: mig=off", "0-1: mig=1g.10gb:7"
MIXED, SINGLE = {"nvidia.com/mig-1g.10gb": 14}, {"nvidia.com/gpu": 14}


def world(*names: str, **how: Any) -> World:
    settings = {"soak": 0, "max_failed": 9, "max_failed_in_a_row": 9}
    machines = fleet_of(*(names or ("h",)), **{"version": WHOLE, "node": True, **how})
    return World(
        machines, UpgradeSettings.model_validate(settings), subject="sharing", target=SMALL
    )


def phases(fleet: World, name: str = "h") -> list[str]:
    found = [each for host, each in fleet.phases if host == name]
    return [each for n, each in enumerate(found) if n == 0 or each != found[n - 1]]


def test_a_changed_node_must_offer_what_its_layout_gives() -> None:
    fleet = world("h", "i")
    text = upgrade_plan_text(fleet.planned(), {})
    assert f"{WHOLE} -> {SMALL} on 2 hosts" in text
    assert "asks its repositories" not in text
    assert fleet.carried_out() == "finished"
    for name, machine in fleet.machines.items():
        assert phases(fleet, name) == ["waiting", "prepared", "draining", "changing", "done"]
        assert (machine.version, machine.cordon) == (SMALL, "")
        assert [list(map(dict, each)) for each in machine.offers] == [[MIXED, SINGLE]]


def test_a_node_whose_change_fails_offers_what_it_did_before() -> None:
    fleet = world("h", "i", broken=True)
    fleet.carried_out()
    machine = fleet.machines["h"]
    assert phases(fleet)[-2:] == ["restoring", "reverted"]
    assert (machine.installs, machine.offers, machine.cordon) == ([SMALL, WHOLE], [()], "")
    assert phases(fleet, "i")[-1] == "passed"


def test_a_roll_back_makes_the_earlier_layout() -> None:
    fleet = world()
    fleet.carried_out()
    machine = fleet.machines["h"]
    state = machine.state
    assert state
    assert (state.subject, state.before, state.target) == ("sharing", WHOLE, SMALL)
    fleet.target = WHOLE
    fleet.carried_out(fleet.planned("back", kind="rollback"))
    assert (machine.version, phases(fleet)[-1]) == (WHOLE, "done")
    assert list(map(dict, machine.offers[-1])) == [{"nvidia.com/gpu": 2}]


def test_work_on_the_gpus_is_waited_for() -> None:
    found = GPU_HAS_WORK(change="GPU 0: mig off -> 1g.10gb:7", work="train (7)")
    report = HostReport("h", status="failed", findings=[found])
    assert step_result(report, touched=False).busy
