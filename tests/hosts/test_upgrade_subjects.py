"""The toolkit of a host at work is changed, and the host is rebooted, as its driver is."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploying import run_deploy
from driver_state import NEWEST, assert_driver
from upgrading import Fleet

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "The toolkit is upgraded and rolled back. A host is rebooted once nothing uses its GPUs.",
        level=3,
    ),
]

NAME, DRIVER = "ubuntu2204", NEWEST["580"]
OLD, NEW = "1.18.2", "1.20.1"
DATA = {"driver_branch": "580", "driver_version": DRIVER, "toolkit_version": OLD}


@pytest.fixture(scope="module")
def host(bare_host: HostFactory) -> Host:
    """A host with the driver and the older toolkit."""
    found = bare_host(NAME)
    done = run_deploy("gpu_node", [found], **DATA)
    assert done.returncode == 0, done.output
    return found


def toolkit(host: Host) -> str:
    return host.output("nvidia-ctk --version | grep -oE '[0-9.]+[0-9]' | head -n 1")


def test_the_toolkit_goes_forth_and_back(host: Host, mirror_host: Host, tmp_path: Path) -> None:
    assert toolkit(host) == OLD
    fleet = Fleet([host], tmp_path, DATA)
    forth = fleet.run("start", "--toolkit", "--to", NEW, "--yes")
    assert forth.returncode == 0, forth.stdout
    assert f"{OLD} -> {NEW} on 1 host" in forth.stdout
    assert toolkit(host) == NEW
    assert_driver(host, DRIVER)
    again = fleet.run("start", "--toolkit", "--to", NEW, "--plan")
    assert f"left out: {NAME}: already at {NEW}" in again.stdout
    with mirror_host.fault("404"):
        back = fleet.run("rollback", "--yes")
    assert back.returncode == 0, back.stdout
    assert toolkit(host) == OLD
    settled = run_deploy("gpu_node", [host], **DATA)
    assert settled.changes() == {NAME: 0}, settled.output


def test_a_host_is_rebooted_once_nothing_uses_its_gpus(host: Host, tmp_path: Path) -> None:
    before = host.boot_id()
    fleet = Fleet([host], tmp_path, DATA)
    with host.fault("gpu-busy"):
        seen: list[str] = []

        def finish() -> None:
            seen.append(host.boot_id())
            host.set_fault("gpu-busy", False)

        waiting = fleet.at(NAME, "draining", finish)
        done = fleet.run("start", "--reboot", "--yes")
        waiting.join()
    assert done.returncode == 0, done.stdout
    assert seen == [before]
    assert host.boot_id() not in ("", before)
    assert fleet.states() == {NAME: "done"}
    assert_driver(host, DRIVER)
    assert fleet.run("rollback", "--yes").returncode == 1
