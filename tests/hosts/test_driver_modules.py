"""Modules in use, rejected or of another kernel; lost GPUs and unreachable hosts."""

from __future__ import annotations

import pytest
from deploying import run_deploy
from driver_state import (
    CHANGE_DRIVER,
    NEWEST,
    OLD_580,
    ONLY_DRIVER,
    assert_driver,
    driver_packages,
    loaded,
)
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

OURS = "/var/lib/gpufleet"
MOVE = {"driver_version": OLD_580, **CHANGE_DRIVER}


@pytest.fixture(scope="module")
def host(bare_host: HostFactory) -> Host:
    return bare_host("ubuntu2204")


@pytest.mark.claim("Secure Boot is detected before any change.", level=3)
def test_secure_boot_is_detected_before_any_change(host: Host) -> None:
    with host.fault("secure-boot"):
        before = snapshot(host, OURS)
        done = run_deploy("gpu_node", [host], **ONLY_DRIVER)
        assert done.returncode == 1
        assert "GF522" in done.codes("ubuntu2204")
        assert differences(before, snapshot(host, OURS)) == {}


def test_a_kernel_that_rejects_the_module(host: Host) -> None:
    """driver_mok_enrolled is set, but the key is not enrolled."""
    with host.fault("secure-boot"):
        done = run_deploy("gpu_node", [host], driver_mok_enrolled=True, **ONLY_DRIVER)
        assert done.returncode == 1
        assert "GF551" in done.codes("ubuntu2204"), done.output
        assert "Key was rejected by service" in done.report["ubuntu2204"]["errors"][0]
        assert loaded(host) == "none"
    done = run_deploy("gpu_node", [host], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    assert_driver(host, NEWEST["580"])
    assert run_deploy("gpu_node", [host], **ONLY_DRIVER).changes() == {"ubuntu2204": 0}


@pytest.mark.claim("If a module is busy, the run changes nothing.", level=3)
def test_a_busy_module_changes_nothing(host: Host) -> None:
    before = snapshot(host, OURS)
    with host.fault("module-busy"):
        done = run_deploy("gpu_node", [host], **MOVE)
    assert done.returncode == 1
    assert "GF552" in done.codes("ubuntu2204"), done.output
    assert "Nothing was changed" in done.report["ubuntu2204"]["errors"][0]
    assert differences(before, snapshot(host, OURS)) == {}
    assert_driver(host, NEWEST["580"])


@pytest.mark.claim("A driver is not changed under running GPU work.", level=3)
def test_gpu_work_is_not_disturbed_unless_allowed(host: Host) -> None:
    before = snapshot(host, OURS)
    with host.fault("gpu-busy"):
        done = run_deploy("gpu_node", [host], **MOVE)
        assert done.returncode == 1
        assert done.codes("ubuntu2204") & {"GF530", "GF552"} == {"GF530"}
        work = next(f for f in done.report["ubuntu2204"]["findings"] if f["code"] == "GF530")
        assert "train infinity (" in work["message"]
        assert "drain" in work["remedy"]
        assert host.output("systemctl is-active gpu-job") == "active"
        assert differences(before, snapshot(host, OURS)) == {
            "running": ["+ gpu-job.service running"],
            "units": ["+ gpu-job.service transient"],
        }
        assert run_deploy("gpu_node", [host], **ONLY_DRIVER).returncode == 0, "no change is needed"
        done = run_deploy("gpu_node", [host], driver_allow_disruption=True, **MOVE)
        assert done.returncode == 0, done.output
        assert_driver(host, OLD_580)
        assert host.run("systemctl is-active gpu-job", check=False).returncode != 0


def test_the_other_flavour_of_the_same_version_replaces_the_modules(host: Host) -> None:
    moved = {"driver_version": OLD_580, "driver_modules": "proprietary", **CHANGE_DRIVER}
    with host.fault("gpu-busy"):
        done = run_deploy("gpu_node", [host], **moved)
        assert done.returncode == 1
        assert "GF530" in done.codes("ubuntu2204"), done.output
    done = run_deploy("gpu_node", [host], **moved)
    assert done.returncode == 0, done.output
    assert_driver(host, OLD_580)
    assert host.output("modinfo -F license nvidia") == "NVIDIA"
    assert "(P" in host.output("grep '^nvidia ' /proc/modules")
    assert run_deploy("gpu_node", [host], **moved).changes() == {"ubuntu2204": 0}
    assert run_deploy("gpu_node", [host], **ONLY_DRIVER).changes() == {"ubuntu2204": 0}


@pytest.mark.extended
def test_a_gpu_off_the_bus_fails_at_the_end(host: Host) -> None:
    with host.fault("gpu-lost"):
        done = run_deploy("gpu_node", [host], **MOVE)
    assert done.returncode == 1, done.output
    assert "GF725" in done.codes("ubuntu2204")
    assert done.report["ubuntu2204"]["changed"] == 0


@pytest.mark.claim("A new kernel gets its module.", level=3)
@pytest.mark.extended
def test_a_new_kernel_gets_its_module(host: Host) -> None:
    """The host boots a kernel that has neither headers nor module."""
    with host.fault("new-kernel"):
        host.reboot()
        assert host.output("uname -r") == host.kind.next_kernel
        assert loaded(host) == "none"
        done = run_deploy("gpu_node", [host], **MOVE)
        assert done.returncode == 0, done.output
        assert "GF521" not in done.codes("ubuntu2204"), "its headers are installed"
        assert done.report["ubuntu2204"]["plan"]["driver"]["action"] == "repair"
        assert_driver(host, OLD_580)
        assert f"linux-headers-{host.kind.next_kernel}" in host.output("dpkg-query -W")
        assert run_deploy("gpu_node", [host], **MOVE).changes() == {"ubuntu2204": 0}
    host.reboot()
    assert run_deploy("gpu_node", [host], **MOVE).returncode == 0
    assert_driver(host, OLD_580)


@pytest.mark.claim("An unreachable host does not stop the others.", level=3)
@pytest.mark.extended
def test_an_unreachable_host_does_not_stop_others(host: Host, sandbox_host: HostFactory) -> None:
    other = sandbox_host("debian12")
    with other.fault("unreachable"):
        done = run_deploy("gpu_node", [other, host], **MOVE)
    assert done.returncode == 1
    assert done.failures() == ["debian12"]
    assert done.report["debian12"]["status"] == "not reached"
    assert "GF005" in done.codes("debian12")
    assert done.report["ubuntu2204"]["changed"] == 0
    assert driver_packages(host)
