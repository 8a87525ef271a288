"""A run is killed at any point: the next run converges, and all checks pass."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from checking import verify
from deploying import ROOT, deploy_command, run_deploy
from driver_state import CHANGE_DRIVER, NEWEST, ONLY_DRIVER, assert_driver

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

KILLS = 20
OPERATIONS = 7  # that take long enough to kill the run: up to the installation and its checks
AFTER_HOLD = 8  # the operation that follows the hold of the packages
LONGEST = 2.5  # seconds after the start of an operation
SEED = 20261120


def settings_for(branch: str) -> dict[str, str | None]:
    """Settings that change the driver to a branch; a downgrade needs an exact version."""
    return (
        {"driver_branch": "580"}
        if branch == "580"
        else {"driver_branch": None, "driver_version": NEWEST[branch]}
    )


def run_and_kill(host: Host, folder: Path, branch: str, operation: int, delay: float) -> bool:
    """Start a change to `branch`, and SIGKILL it `delay` seconds after an operation starts.

    Returns whether it was killed before it ended.
    """
    per_host = {host.name: settings_for(branch)}
    command = deploy_command("gpu_node", [host], folder, per_host, CHANGE_DRIVER)
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout
        started = 0
        for line in process.stdout:
            started += "Starting operation" in line
            if started > operation:
                break
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return True
    return False


def converge(host: Host, branch: str) -> dict[str, Any]:
    """Run to the end with `branch`; the host's part of the report."""
    settings = {"per_host": {host.name: settings_for(branch)}, **CHANGE_DRIVER}
    done = run_deploy("gpu_node", [host], **settings)
    assert done.returncode == 0, done.output
    assert_driver(host, NEWEST[branch])
    return dict(done.report[host.name])


@pytest.mark.extended
def test_holds_of_a_killed_run_do_not_count_as_the_users(
    bare_host: HostFactory, tmp_path: Path
) -> None:
    host = bare_host("ubuntu2204")
    assert run_and_kill(host, tmp_path, "580", AFTER_HOLD, 0)
    assert "nvidia-utils-580" in host.output("apt-mark showhold")
    assert host.output("ls /var/lib/gpufleet/provenance.json || echo none") == "none"
    converge(host, "550")


@pytest.mark.claim(
    "The next run completes a run that was killed at any of 20 points.",
    level=3,
)
@pytest.mark.extended
def test_the_run_after_a_killed_one_converges(bare_host: HostFactory, tmp_path: Path) -> None:
    """Killed in each operation, during the first installation and changes of branch."""
    host = bare_host("ubuntu2204")
    rng = random.Random(SEED)
    points = [(number % OPERATIONS, rng.uniform(0, LONGEST)) for number in range(KILLS)]
    rng.shuffle(points)
    killed = 0
    for number, (operation, delay) in enumerate(points):
        branch = ("580", "550")[number // 3 % 2]
        killed += run_and_kill(host, tmp_path, branch, operation, delay)
        if number % 5 == 4:
            converge(host, branch)
    assert killed >= KILLS / 2, "most runs were killed before their end"
    converge(host, "580")
    assert converge(host, "580")["changed"] == 0
    settings = {"driver_branch": "580", **ONLY_DRIVER}
    result = verify([host], **settings)[host.name]
    assert result["failed"] == 0, result
    assert result["passed"] > 10
