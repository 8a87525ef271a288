"""A run that is killed at any point: the next one converges, and the checks are green."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from deploying import PYINFRA, ROOT, deploy_command, run_deploy
from driver_state import NEWEST, ONLY_DRIVER, assert_driver

from gpufleet.sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

GPUFLEET = PYINFRA.with_name("gpufleet")
KILLS = 20
SEED = 20261120


def run_and_kill(host: Host, folder: Path, branch: str, delay: float) -> bool:
    """Start a change to `branch` and SIGKILL it after `delay` seconds; whether it still ran."""
    command = deploy_command(
        "gpu_node", [host], folder, {host.name: {"driver_branch": branch}}, ONLY_DRIVER
    )
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return True
    return False


def converge(host: Host, branch: str) -> float:
    """A run to `branch` that nobody kills; its duration in seconds."""
    began = time.monotonic()
    wish = {"per_host": {host.name: {"driver_branch": branch}}, **ONLY_DRIVER}
    done = run_deploy("gpu_node", [host], **wish)
    assert done.returncode == 0, done.output
    assert_driver(host, NEWEST[branch])
    assert run_deploy("gpu_node", [host], **wish).changes() == {host.name: 0}
    return time.monotonic() - began


def test_a_killed_run_is_made_up_for(bare_host: HostFactory, tmp_path: Path) -> None:
    """Killed at 20 points of changes to and fro, each on top of what the last one left."""
    host = bare_host("ubuntu2204")
    chance = random.Random(SEED)
    assert run_and_kill(host, tmp_path, "580", 4.0), "a first installation takes longer"
    duration = converge(host, "580")
    killed = 0
    for number in range(KILLS):
        branch = ("550", "580")[number // 2 % 2]
        killed += run_and_kill(host, tmp_path, branch, chance.uniform(0.2, 0.9) * duration)
        if number % 4 == 3:
            converge(host, branch)
    assert killed > KILLS / 2, "most runs were killed before their end"
    converge(host, "580")
    checked = subprocess.run(
        [GPUFLEET, "verify", "inventories/sandbox.py", "--limit", host.name],
        cwd=ROOT,
        env={**os.environ, "GPUFLEET_SANDBOX": host.sandbox},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
    assert "passed" in checked.stdout
