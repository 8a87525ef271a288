"""Work that starts after the facts were gathered is not ended by a later step."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from containers import import_image, running, start, started_at
from deploying import run_deploy
from driver_state import CHANGE_DRIVER, NEWEST, OLD_580, ONLY_DRIVER, assert_driver, loaded
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

OURS = "/var/lib/gpufleet"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
MOVE = {"driver_version": OLD_580, "node_reboot": "if_needed", **CHANGE_DRIVER}


def at(step: str, action: Callable[[], object]) -> Callable[[str], None]:
    """Call `action` once, when the run starts `step`."""
    waiting = [action]

    def watch(line: str) -> None:
        if waiting and "Starting operation" in line and step in line:
            waiting.pop()()

    return watch


@pytest.fixture(scope="module")
def host(bare_host: HostFactory) -> Host:
    """A host with the newest driver."""
    found = bare_host("ubuntu2204")
    done = run_deploy("gpu_node", [found], **ONLY_DRIVER)
    assert done.returncode == 0, done.output
    return found


@pytest.mark.claim(
    "Work that begins during a run is not ended by an unload, a reboot or a restart of docker.",
    level=3,
)
def test_work_that_starts_after_the_facts_is_not_ended(host: Host) -> None:
    """A reboot is allowed and would help: the run checks for work again before it."""
    before, boot = snapshot(host, OURS), host.output(BOOT_ID)
    begin = at("Resolve and download the driver", lambda: host.set_fault("gpu-busy", True))
    try:
        done = run_deploy("gpu_node", [host], on_line=begin, **MOVE)
        assert done.returncode == 1
        assert "GF534" in done.codes("ubuntu2204"), done.output
        assert "sleep (process " in done.report["ubuntu2204"]["errors"][0]
        assert host.output("systemctl is-active gpu-job") == "active"
    finally:
        host.set_fault("gpu-busy", False)
    assert host.output(BOOT_ID) == boot
    changed = differences(before, snapshot(host, OURS))
    assert {"packages", "modules", "running", "holds"} & set(changed) == set(), changed
    assert_driver(host, NEWEST["580"])


def test_work_that_starts_before_the_reboot_is_not_ended(host: Host) -> None:
    boot = host.output(BOOT_ID)
    begin = at("Install the driver packages", lambda: host.set_fault("gpu-busy", True))
    try:
        with host.fault("module-busy"):
            done = run_deploy("gpu_node", [host], on_line=begin, **MOVE)
        assert done.returncode == 1
        assert "GF535" in done.codes("ubuntu2204"), done.output
        assert host.output("systemctl is-active gpu-job") == "active"
        assert host.output(BOOT_ID) == boot
        assert loaded(host) == NEWEST["580"]
        done = run_deploy("gpu_node", [host], **MOVE)
        assert "GF530" in done.codes("ubuntu2204"), done.output
    finally:
        host.set_fault("gpu-busy", False)
    done = run_deploy("gpu_node", [host], **MOVE)
    assert done.returncode == 0, done.output
    assert_driver(host, OLD_580)


def test_containers_that_start_after_the_facts_are_not_stopped(host: Host) -> None:
    import_image(host)
    began = started_at(host, "docker")
    begin = at("Resolve and download the toolkit", lambda: start(host, "late"))
    done = run_deploy("gpu_node", [host], driver_enabled=False, on_line=begin)
    assert done.returncode == 1
    assert "GF440" in done.codes("ubuntu2204"), done.output
    identity = host.output("docker inspect -f '{{.Id}}' late")[:12]
    assert identity in done.report["ubuntu2204"]["errors"][0]
    assert (running(host), started_at(host, "docker")) == (["late"], began)
    assert "nvidia" not in host.run("cat /etc/docker/daemon.json", check=False).stdout
    done = run_deploy("gpu_node", [host], driver_enabled=False)
    assert done.returncode == 0, done.output
    assert "GF413" in done.codes("ubuntu2204")
    assert "restart docker" in " ".join(done.report["ubuntu2204"]["needs"])
    assert running(host) == ["late"]
