"""MIG layouts and limits on hosts: made, kept through reboots and upgrades, removed; faults."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deploying import Outcome, run_deploy
from driver_state import NEWEST, OLD_580, loaded, mig_layouts
from examining import run_gpufleet, write_inventory
from upgrading import Fleet

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

MIXED = ["3g.40gb", "2g.20gb", "1g.10gb:2"]
KEYS: dict[str, dict[str, Any]] = {
    "ubuntu2204": {  # two A100
        "gpu_mig": {"0": MIXED, "1": "off"}, "gpu_allow_reset": True, "gpu_power_limit": 300,
    },
    "ubuntu2404": {"gpu_mig": "1g.10gb:7", "gpu_clocks": [300, 1500]},  # one H100
}  # fmt: skip
LAYOUTS = {
    "ubuntu2204": [["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"], []],
    "ubuntu2404": [["1g.10gb"] * 7],
}
PROGRAM = "/usr/local/sbin/gpufleet-gpus"
WANTED = "/etc/gpufleet-gpus"
UNIT = "gpufleet-gpus.service"
BOOT = {"node_reboot": "if_needed"}  # ubuntu2404 must unload nouveau


def asked(host: Host, field: str) -> list[str]:
    return host.output(f"nvidia-smi --query-gpu={field} --format=csv,noheader").splitlines()


def apply(*hosts: Host, **data: Any) -> Outcome:
    return run_deploy("gpu_node", hosts, per_host=KEYS, **{**BOOT, **data})


@pytest.fixture(scope="module")
def fleet(bare_host: HostFactory) -> dict[str, Host]:
    """Hosts that get driver, toolkit and layouts in one run."""
    hosts = {kind: bare_host(kind) for kind in KEYS}
    done = apply(*hosts.values(), driver_version=OLD_580)
    assert done.returncode == 0, done.output
    return hosts


@pytest.mark.claim(
    "A layout of MIG and limits are made with the driver, and a second run changes nothing.",
    level=3,
)
def test_layouts_are_made_and_a_second_run_changes_nothing(fleet: dict[str, Host]) -> None:
    again = apply(*fleet.values(), driver_version=OLD_580)
    assert again.changes() == dict.fromkeys(fleet, 0), again.output
    for name, host in fleet.items():
        assert mig_layouts(host) == LAYOUTS[name]
        devices = sum(map(len, LAYOUTS[name]))
        assert host.output("grep -c 'name: MIG-' /var/run/cdi/nvidia.yaml") == str(devices)
    assert asked(fleet["ubuntu2204"], "power.limit") == ["300.00 W", "300.00 W"]


@pytest.mark.claim(
    "A reboot takes layouts and limits back; they are there again before CDI, docker and the "
    "kubelet start.",
    level=3,
)
def test_a_reboot_keeps_layouts(fleet: dict[str, Host]) -> None:
    uuids = {name: host.output("nvidia-smi -L") for name, host in fleet.items()}
    for name, host in fleet.items():
        host.reboot()
        assert host.output("nvidia-smi -L") == uuids[name]
        assert host.output(f"systemctl is-active {UNIT}") == "active"
        later = host.output(f"systemctl show -p Before {UNIT}")
        for unit in ("nvidia-cdi-refresh", "docker", "containerd", "kubelet", "slurmd"):
            assert f"{unit}.service" in later
    assert apply(*fleet.values(), driver_version=OLD_580).changes() == dict.fromkeys(fleet, 0)


def test_a_refused_layout_gives_the_earlier_one_back(fleet: dict[str, Host]) -> None:
    host = fleet["ubuntu2404"]
    host.run(f"sed 's/mig=[^ ]*/mig=4g.40gb,4g.40gb/' {WANTED} > /tmp/wanted")
    said = host.output(f"{PROGRAM} /tmp/wanted || echo status $?")
    assert "it has its earlier layout again" in said
    assert "Insufficient Resources" in said
    assert said.endswith("status 1")
    assert mig_layouts(host) == LAYOUTS["ubuntu2404"]


def test_an_instance_in_use_is_not_touched(fleet: dict[str, Host]) -> None:
    host = fleet["ubuntu2404"]
    with host.fault("mig-busy"):
        done = run_deploy("gpu_node", [host], gpu_mig="3g.40gb:2", driver_version=OLD_580)
        assert "GF488" in done.codes("ubuntu2404")
        host.run(f"sed 's/mig=[^ ]*/mig=3g.40gb/' {WANTED} > /tmp/wanted")
        assert "while programs use it" in host.run(f"{PROGRAM} /tmp/wanted", check=False).stdout
    assert mig_layouts(host) == LAYOUTS["ubuntu2404"]


@pytest.mark.claim("A setting that a GPU refuses with exit status 0 is an error.", level=3)
def test_a_refused_power_limit_is_an_error(fleet: dict[str, Host]) -> None:
    host = fleet["ubuntu2404"]
    with host.fault("power-limit"):
        done = apply(host, driver_version=OLD_580, gpu_power_limit=450)
        assert "GF490" in done.codes("ubuntu2404")
        assert "it is 700.00 W" in done.output
    done = apply(host, driver_version=OLD_580, gpu_power_limit=450)
    assert done.returncode == 0, done.output
    assert asked(host, "power.limit") == ["450.00 W"]


def test_a_mode_that_stays_pending_waits_for_a_reboot(fleet: dict[str, Host]) -> None:
    host = fleet["ubuntu2204"]
    data = {"gpu_mig": "3g.40gb:2", "gpu_allow_reset": True, "driver_version": OLD_580}
    with host.fault("mig-pending"):
        done = run_deploy("gpu_node", [host], node_reboot="never", **data)
        assert done.returncode == 0, done.output
        assert "GF491" in done.codes("ubuntu2204")
        assert any("MIG mode" in need for need in done.report["ubuntu2204"]["needs"])
        host.reboot()
    assert mig_layouts(host) == [["3g.40gb"] * 2] * 2
    done = run_deploy("gpu_node", [host], **data)
    assert done.changes() == {"ubuntu2204": 0}, done.output
    assert apply(host, driver_version=OLD_580).returncode == 0


def test_the_doctor_names_a_lost_layout(fleet: dict[str, Host], tmp_path: Path) -> None:
    host = fleet["ubuntu2404"]
    inventory = write_inventory(tmp_path, [host], **KEYS["ubuntu2404"])
    doctor = partial(run_gpufleet, "doctor", inventory, "--check", "chain.layout")
    assert doctor().returncode == 0
    host.run("nvidia-smi mig -dci && nvidia-smi mig -dgi && nvidia-smi -mig 0")
    lost = doctor()
    assert (lost.returncode, "WARNING" in lost.stdout) == (1, True), lost.stdout
    host.run(f"systemctl restart {UNIT}")
    assert doctor().returncode == 0
    assert mig_layouts(host) == LAYOUTS["ubuntu2404"]


@pytest.mark.claim(
    "A driver upgrade makes the MIG layout of gpu_mig again, with the same devices.", level=3
)
def test_an_upgrade_carries_layouts_over(fleet: dict[str, Host], tmp_path: Any) -> None:
    uuids = {name: host.output("nvidia-smi -L") for name, host in fleet.items()}
    assert apply(*fleet.values(), driver_version=OLD_580).returncode == 0
    for name, host in fleet.items():
        own = Fleet([host], tmp_path / name, {**BOOT, **KEYS[name]})
        own.folder.mkdir()
        done = own.run("start", "--to", NEWEST["580"], "--yes")
        assert done.returncode == 0, done.stdout
        assert loaded(host) == NEWEST["580"]
        assert host.output("nvidia-smi -L") == uuids[name]
        assert host.output("grep -c 'name: MIG-' /var/run/cdi/nvidia.yaml") != "0"


def test_a_removal_returns_whole_gpus(fleet: dict[str, Host]) -> None:
    done = run_deploy("remove", list(fleet.values()))
    assert done.returncode == 0, done.output
    for host in fleet.values():
        files = f"ls -d {WANTED} {PROGRAM} /etc/systemd/system/{UNIT}"
        for command in (files, f"systemctl list-unit-files {UNIT} --no-legend"):
            assert host.run(command, check=False).stdout == "", command
    kept = fleet["ubuntu2204"].output("cat /var/lib/sim-board/*.mig")
    assert set(kept.split()) == {"0"}, "the boards of Ampere GPUs keep their mode"
