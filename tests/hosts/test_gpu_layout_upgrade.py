"""MIG layouts of hosts in use: changed by `gpufleet upgrade --sharing`, and rolled back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deploying import run_deploy
from driver_state import OLD_580, assert_driver, mig_layouts
from upgrading import Fleet

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "MIG layouts change on hosts in use, once nothing uses their GPUs, and return if the "
        "change fails.",
        level=3,
    ),
]

AMPERE, HOPPER = "ubuntu2204", "ubuntu2404"  # two A100, whose MIG mode needs a reset; one H100
DRIVER: dict[str, Any] = {
    "driver_version": OLD_580, "driver_branch": "580", "node_reboot": "if_needed",
}  # fmt: skip
WHOLE: dict[str, Any] = {**DRIVER, "gpu_mig": "off"}
HALVES: dict[str, Any] = {**DRIVER, "gpu_mig": "3g.40gb:2"}
MIXED: dict[str, Any] = {**DRIVER, "gpu_mig": ["3g.40gb", "1g.10gb:4"]}
GPUS = {AMPERE: 2, HOPPER: 1}


def cdi_devices(host: Host) -> int:
    return int(host.run("grep -c 'name: MIG-' /var/run/cdi/nvidia.yaml", check=False).stdout or 0)


def fleet_of(hosts: list[Host], folder: Path, data: dict[str, Any]) -> Fleet:
    folder.mkdir(exist_ok=True)
    return Fleet(hosts, folder, {**data, "upgrade_soak": 0})


@pytest.fixture(scope="module")
def hosts(bare_host: HostFactory) -> dict[str, Host]:
    """Hosts with driver and toolkit, and whole GPUs that no key manages."""
    found = {name: bare_host(name) for name in GPUS}
    done = run_deploy("gpu_node", list(found.values()), **DRIVER)
    assert done.returncode == 0, done.output
    return found


def test_a_layout_that_does_not_fit_stops_before_a_host_is_touched(
    hosts: dict[str, Host], tmp_path: Path
) -> None:
    wrong = {**DRIVER, "gpu_mig": "4g.40gb:2"}
    fleet = fleet_of([*hosts.values()], tmp_path, wrong)
    done = fleet.run("start", "--sharing", "--yes")
    assert done.returncode == 1
    for name in hosts:
        assert f"left out: {name}: GF481" in done.stdout
    assert all(state is None for state in (host["state"] for host in fleet.status()["hosts"]))


def test_layouts_change_on_hosts_in_use(hosts: dict[str, Host], tmp_path: Path) -> None:
    fleet = fleet_of([*hosts.values()], tmp_path, HALVES)
    plan = fleet.run("start", "--sharing", "--plan")
    assert plan.returncode == 0, plan.stdout
    assert "0-1: mig=off -> 0-1: mig=3g.40gb:2 on 1 host" in plan.stdout
    assert "0: mig=off -> 0: mig=3g.40gb:2 on 1 host" in plan.stdout
    one = hosts[AMPERE]
    with one.fault("gpu-busy"):
        refused = run_deploy("gpu_node", [one], **HALVES, gpu_allow_reset=True)
        assert "GF488" in refused.codes(AMPERE)
        seen: list[list[list[str]]] = []

        def finish() -> None:
            seen.append(mig_layouts(one))
            one.set_fault("gpu-busy", False)

        waiting = fleet.at(AMPERE, "draining", finish)
        done = fleet.run("start", "--sharing", "--yes")
        waiting.join()
    assert done.returncode == 0, done.stdout
    assert seen == [[[], []]], "the job had its whole GPU to its end"
    assert fleet.states() == dict.fromkeys(hosts, "done")
    for name, host in hosts.items():
        assert mig_layouts(host) == [["3g.40gb"] * 2] * GPUS[name]
        assert cdi_devices(host) == 2 * GPUS[name]
        assert_driver(host, OLD_580)
        assert "reset=1" not in host.output("cat /etc/gpufleet-gpus")
    settled = run_deploy("gpu_node", list(hosts.values()), **HALVES)
    assert settled.changes() == dict.fromkeys(hosts, 0), settled.output
    again = fleet.run("start", "--sharing", "--plan")
    assert again.returncode == 0, again.stdout
    assert f"left out: {HOPPER}: already at 0: mig=3g.40gb:2" in again.stdout


def test_a_reboot_keeps_the_changed_layout(hosts: dict[str, Host]) -> None:
    hosts[HOPPER].reboot()
    assert mig_layouts(hosts[HOPPER]) == [["3g.40gb"] * 2]


def test_a_roll_back_makes_the_earlier_layouts(hosts: dict[str, Host], tmp_path: Path) -> None:
    forth = fleet_of([*hosts.values()], tmp_path, MIXED)
    done = forth.run("start", "--sharing", "--yes")
    assert done.returncode == 0, done.stdout
    for name, host in hosts.items():
        assert mig_layouts(host) == [["3g.40gb", *["1g.10gb"] * 4]] * GPUS[name]
    back = forth.run("rollback", "--yes")
    assert back.returncode == 0, back.stdout
    for name, host in hosts.items():
        assert mig_layouts(host) == [["3g.40gb"] * 2] * GPUS[name]
        assert cdi_devices(host) == 2 * GPUS[name]
    settled = run_deploy("gpu_node", list(hosts.values()), **HALVES)
    assert settled.changes() == dict.fromkeys(hosts, 0), settled.output


def test_a_change_that_fails_leaves_the_earlier_layout(
    hosts: dict[str, Host], tmp_path: Path
) -> None:
    """An A100 whose MIG mode stays pending, on a host that must not reboot."""
    host, uuids = hosts[AMPERE], hosts[AMPERE].output("nvidia-smi -L")
    never = {**WHOLE, "node_reboot": "never"}
    fleet = fleet_of([host], tmp_path, never)
    with host.fault("mig-pending"):
        done = fleet.run("start", "--sharing", "--yes")
    assert done.returncode == 1, done.stdout
    assert fleet.states() == {AMPERE: "reverted"}
    assert "GF490" in fleet.reason(AMPERE)
    assert mig_layouts(host) == [["3g.40gb"] * 2] * 2
    assert host.output("nvidia-smi -L") == uuids
    pending = host.output("nvidia-smi --query-gpu=mig.mode.pending --format=csv,noheader")
    assert pending.splitlines() == ["Enabled", "Enabled"]
    settled = run_deploy("gpu_node", [host], **HALVES)
    assert settled.changes() == {AMPERE: 0}, settled.output


def test_a_killed_run_goes_on(hosts: dict[str, Host], tmp_path: Path) -> None:
    host = hosts[HOPPER]
    fleet = fleet_of([host], tmp_path, MIXED)
    fleet.killed(60, "start", "--sharing", "--yes", events=3)  # while it changes
    done = fleet.run("start", "--sharing", "--yes")
    assert done.returncode == 0, done.stdout
    assert mig_layouts(host) == [["3g.40gb", *["1g.10gb"] * 4]]
