"""The driver of an rpm host at work is changed, and goes back in one transaction."""

from __future__ import annotations

from pathlib import Path

import pytest
from deploying import run_deploy
from driver_state import NEWEST, assert_driver, held
from upgrading import Fleet

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

NEW, OLD = NEWEST["550"], "550.144.03"
DATA = {"toolkit_enabled": False, "driver_branch": "550", "driver_version": OLD, "upgrade_soak": 0}


@pytest.mark.claim(
    "An rpm host is upgraded, and rolled back while the repository is away.",
    level=3,
)
def test_an_rpm_host_goes_forth_and_back(
    bare_host: HostFactory, mirror_host: Host, tmp_path: Path
) -> None:
    """Back without a repository."""
    host = bare_host("el7")
    done = run_deploy("gpu_node", [host], **DATA)
    assert done.returncode == 0, done.output
    fleet = Fleet([host], tmp_path, DATA)
    forth = fleet.run("start", "--to", NEW, "--yes")
    assert forth.returncode == 0, forth.stdout
    assert fleet.states() == {"el7": "done"}
    assert_driver(host, NEW)
    assert held(host)
    with mirror_host.fault("404"):
        back = fleet.run("rollback", "--yes")
    assert back.returncode == 0, back.stdout
    assert fleet.states() == {"el7": "done"}
    assert_driver(host, OLD)
    assert held(host)
    settled = run_deploy("gpu_node", [host], **DATA)
    assert settled.changes() == {"el7": 0}, settled.output
