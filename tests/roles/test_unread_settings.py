"""Settings of hosts that a run cannot reach: their problems are reported all the same."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpufleet.node.settings import settings_problems

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def closed() -> Iterator[int]:
    """A port of loopback on which nothing listens while it is bound."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def planned(
    folder: Path,
    hosts: list[tuple[str, dict[str, Any]]],
    deploy: str = "deploys/preflight.py",
    cwd: Path = ROOT,
) -> tuple[str, dict[str, Any]]:
    """The output of a run that reaches no host, and the hosts of its report."""
    inventory, report = folder / "inventory.py", folder / "report.json"
    inventory.write_text(f"gpu_nodes = {hosts!r}\n")
    done = subprocess.run(
        [sys.executable, "-m", "pyinfra", "-y", str(inventory), deploy],
        cwd=cwd, env={**os.environ, "GPUFLEET_REPORT": str(report)}, check=False,
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return " ".join(done.stdout.split()), json.loads(report.read_text())["hosts"]


def test_a_misspelt_key_of_an_unreachable_host_is_reported(tmp_path: Path, closed: int) -> None:
    data = {"ssh_hostname": "127.0.0.1", "ssh_port": closed, "driver_brnch": "580"}
    shown, hosts = planned(tmp_path, [(f"gpu-{number}", data) for number in range(1, 4)])
    for host in hosts.values():
        assert host["status"] == "not reached"
        assert [found["code"] for found in host["findings"]] == ["GF005", "GF201"]
    refused = f"Connection failed: Connection refused (port {closed})"
    assert f"GF005 blocker 3 hosts (gpu-[1-3]): {refused}" in shown
    assert "--limit HOST" in shown
    assert "Did you mean driver_branch?" in shown


def test_valid_settings_of_an_unreachable_host_are_no_finding(tmp_path: Path, closed: int) -> None:
    data = {"ssh_hostname": "127.0.0.1", "ssh_port": closed, "driver_branch": "580"}
    _, hosts = planned(tmp_path, [("gpu-1", data)])
    assert [found["code"] for found in hosts["gpu-1"]["findings"]] == ["GF005"]


@pytest.mark.parametrize(
    ("groups", "data", "codes"),
    [
        (["gpu_nodes"], {"driver_brnch": "580"}, ["GF201"]),
        (["gpu_cluster"], {"cluster_stack": "gpu-operatr"}, ["GF202"]),
        (["gpu_nodes", "gpu_cluster"], {"cluster_stack": "gpu-operatr"}, ["GF202"]),
        (["gpu_nodes", "gpu_cluster"], {"driver_brnch": "580"}, ["GF201"]),
        (["gpu_nodes", "gpu_cluster"], {"cluster_stack": "gpu-operator"}, []),
    ],
)
def test_settings_are_read_as_the_groups_say(
    groups: list[str], data: dict[str, Any], codes: list[str]
) -> None:
    assert [found.code for found in settings_problems(groups, data)] == codes


def test_a_deploy_of_another_name_reads_no_settings(tmp_path: Path, closed: int) -> None:
    (tmp_path / "deploys").mkdir()
    (tmp_path / "deploys/web.py").write_text("")
    (tmp_path / "config.py").write_text((ROOT / "config.py").read_text())
    data = {"ssh_hostname": "127.0.0.1", "ssh_port": closed, "driver_jar": "a.jar"}
    _, hosts = planned(tmp_path, [("web-1", data)], "deploys/web.py", tmp_path)
    assert [found["code"] for found in hosts["web-1"]["findings"]] == ["GF005"]
