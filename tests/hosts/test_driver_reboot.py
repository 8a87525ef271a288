"""nouveau holds the GPU: a reboot is needed, requested or, if allowed, performed."""

from __future__ import annotations

import pytest
from deploying import run_deploy
from driver_state import NEWEST, ONLY_DRIVER, assert_driver, driver_packages, loaded

from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

BLACKLIST = "etc/modprobe.d/gpufleet-nvidia.conf"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


@pytest.mark.claim(
    "Without permission a needed reboot is reported, not done.",
    level=3,
)
@pytest.mark.extended
def test_a_needed_reboot_is_reported(bare_host: HostFactory) -> None:
    host = bare_host("ubuntu2404")
    host.set_fault("nouveau", True)
    boot = host.output(BOOT_ID)
    for run in range(2):
        done = run_deploy("gpu_node", [host], node_reboot="never", **ONLY_DRIVER)
        part = done.report["ubuntu2404"]
        assert done.returncode == 0, done.output
        assert part["failed"] is False
        assert {"GF523", "GF524"} <= done.codes("ubuntu2404")
        assert len(part["needs"]) == 1
        assert "reboot" in part["needs"][0]
        assert "nouveau" in part["needs"][0]
        assert set(driver_packages(host).values()) == {NEWEST["580"]}
        assert loaded(host) == "none"
        steps = part["plan"]["steps"]
        done_now = [
            each for each in steps if not each.startswith(("driver: load", "driver: start"))
        ]
        assert part["changed"] == len(done_now)
        assert bool(done_now) is (run == 0), "the second run can do nothing"
        assert f"{len(done_now)}, {len(steps) - len(done_now)} not done" in done.output
        assert not {"GF521", "GF150"} & done.codes("ubuntu2404"), "solved, or said by GF524"
    assert host.output(BOOT_ID) == boot
    assert BLACKLIST in host.output("lsinitramfs /boot/initrd.img-$(uname -r)")
    host.reboot()
    done = run_deploy("gpu_node", [host], node_reboot="never", **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert done.report["ubuntu2404"]["needs"] == []
    assert_driver(host, NEWEST["580"])
    again = run_deploy("gpu_node", [host], node_reboot="never", **ONLY_DRIVER)
    assert again.changes() == {"ubuntu2404": 0}


@pytest.mark.claim(
    "With permission a host is rebooted once, and recognised by its boot id.",
    level=3,
)
def test_a_slow_host_is_rebooted_once_if_allowed(bare_host: HostFactory) -> None:
    host = bare_host("ubuntu2404")
    host.set_fault("nouveau", True)
    host.set_fault("slow-reboot", True)
    boot = host.output(BOOT_ID)
    done = run_deploy(
        "gpu_node", [host], node_reboot="if_needed", node_reboot_timeout=180, **ONLY_DRIVER
    )
    assert done.returncode == 0, done.output
    assert host.output(BOOT_ID) != boot
    assert done.report["ubuntu2404"]["needs"] == []
    assert "GF523" not in done.codes("ubuntu2404"), "nouveau is gone"
    assert "waiting for the reboot" in done.output
    assert_driver(host, NEWEST["580"])
    boot = host.output(BOOT_ID)
    again = run_deploy("gpu_node", [host], node_reboot="if_needed", **ONLY_DRIVER)
    assert again.changes() == {"ubuntu2404": 0}
    assert host.output(BOOT_ID) == boot
