"""A run on several workers of this machine, one of which is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from checking import GPUFLEET
from deploying import ROOT, deploy_command
from driver_state import NEWEST, assert_driver

from gpufleet.core.inventory import exactly
from gpufleet_sandbox import Host
from gpufleet_sandbox.waiting import wait_until
from tests.hosts.conftest import HostFactory

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

KINDS = ("ubuntu2204", "debian12")
DATA = {"driver_branch": "580", "toolkit_enabled": False}


def installs(host: Host) -> bool:
    return host.run("pgrep -x dpkg", check=False).returncode == 0


def worker_of(host: Host, process: subprocess.Popen[str]) -> int:
    """The process that runs on the host, a child of the command."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    children = [int(pid) for task in tasks for pid in task.read_text().split()]
    words = {
        pid: Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0") for pid in children
    }
    limit = exactly(host.name)
    (found,) = [pid for pid, said in words.items() if limit in said and "--limit" in said]
    return found


def test_hosts_of_a_killed_worker_are_converged_by_another(
    bare_host: HostFactory, tmp_path: Path
) -> None:
    hosts = [bare_host(kind) for kind in KINDS]
    report = tmp_path / "report.json"
    inventory = deploy_command("gpu_node", hosts, tmp_path, data=DATA)[-2]
    words = [str(GPUFLEET), "apply", inventory, "--yes", "--workers", "2"]
    environment = {**os.environ, "GPUFLEET_REPORT": str(report)}

    def states() -> dict[str, Any]:
        found = json.loads(report.read_text())["hosts"]
        return {name: part["status"] for name, part in found.items()}

    with subprocess.Popen(
        words,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert wait_until(lambda: installs(hosts[0]), 300)
        os.kill(worker_of(hosts[0], process), signal.SIGKILL)
        output, _ = process.communicate(timeout=900)
    assert process.returncode == 0, output
    assert "its 1 host run again" in output
    assert set(states()) == set(KINDS)
    for host in hosts:
        assert_driver(host, NEWEST["580"])
    again = subprocess.run(
        words, cwd=ROOT, env=environment, text=True, timeout=300, check=False, capture_output=True
    )
    assert again.returncode == 0, again.stdout
    assert states() == dict.fromkeys(KINDS, "converged")
