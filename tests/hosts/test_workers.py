"""A run in parts on hosts of this machine."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from checking import GPUFLEET
from deploying import ROOT, deploy_command
from driver_state import NEWEST, assert_driver

from tests.hosts.conftest import HostFactory

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

KINDS = ("ubuntu2204", "debian12")
DATA = {"driver_branch": "580", "toolkit_enabled": False}


def test_hosts_are_converged_in_parts(bare_host: HostFactory, tmp_path: Path) -> None:
    hosts = [bare_host(kind) for kind in KINDS]
    report = tmp_path / "report.json"
    inventory = deploy_command("gpu_node", hosts, tmp_path, data=DATA)[-2]
    words = [str(GPUFLEET), "apply", inventory, "--yes", "--workers", "2", "--json", str(report)]
    for status in ("changed", "converged"):
        done = subprocess.run(
            words, cwd=ROOT, env={**os.environ}, text=True, timeout=900, check=False,
            capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(report.read_text())["hosts"]
        assert {name: host["status"] for name, host in found.items()} == dict.fromkeys(
            KINDS, status
        )
    for host in hosts:
        assert_driver(host, NEWEST["580"])
