"""Each defect of a host fails its own check and no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from breakages import BREAKAGES, FAULTS, INSTALL, REPOSITORIES, TOOLKIT, VERSION, Breakage
from shipped_checks import failures

from gpufleet.verify.connection import Connections
from gpufleet.verify.inventory import Target
from gpufleet.verify.node import CheckedNode
from gpufleet_sandbox.host import Host
from gpufleet_sandbox.inventory import nodes
from gpufleet_sandbox.sandbox import Sandbox
from tests.selection import some

pytestmark = pytest.mark.hosts
ROOT = Path(__file__).parents[2]
SANDBOX = f"checks-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"


def packages(host: Host, version: str) -> dict[str, str]:
    """Installed packages of a version, by name, as dpkg prints them."""
    text = host.output("dpkg-query -W -f '${Package} ${Version}\\n'")
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if pair[-1].startswith(version)}


def record(host: Host) -> dict[str, Any]:
    """Content of provenance.json after such an installation."""
    docker = {"config": "/etc/docker/daemon.json"}
    containerd = {"config": "/etc/containerd/config.toml", "user_keys": ["oom_score"]}
    return {
        "schema": 1,
        "driver": {
            "version": VERSION,
            "branch": "580",
            "modules": "open",
            "build": "dkms",
            "source": "nvidia",
            "packages": packages(host, VERSION),
            "held": True,
        },
        "toolkit": {
            "version": TOOLKIT,
            "packages": packages(host, TOOLKIT),
            "runtimes": {
                "docker": docker | {"user_keys": ["registry-mirrors", "features.buildkit"]},
                "containerd": containerd,
            },
            "cdi": {"path": "/etc/cdi/nvidia.yaml", "driver": VERSION},
        },
    }


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """A Debian 12 host with a driver and the toolkit installed by hand."""
    sandbox = Sandbox(SANDBOX)
    try:
        sandbox.up(["debian12"]).wait_for_mirror()
        host = sandbox.host("debian12")
        lines = "".join(f"deb [trusted=yes] {repository}\n" for repository in REPOSITORIES)
        host.put("/etc/apt/sources.list.d/by-hand.list", lines)
        host.run(INSTALL, timeout=900)
        host.put("/var/lib/gpufleet/provenance.json", json.dumps(record(host)))
        yield host
    finally:
        sandbox.down()


@pytest.fixture(scope="module")
def connections() -> Iterator[Connections]:
    opened = Connections()
    yield opened
    opened.close()


def failing_checks(connections: Connections) -> dict[str, str]:
    """Check -> message of each check that fails now. Most faults of a host break its containers,
    too: the check of containers counts only if no other fails."""
    ((name, data),) = nodes(SANDBOX)
    target = Target(name, ("gpu_nodes",), data)
    found = failures(CheckedNode(target, connections.open(target)))
    own = {check: text for check, text in found.items() if "container_sees_gpus" not in check}
    return own or found


@pytest.mark.claim("`verify` opens one SSH connection per host.", level=3)
def test_healthy_host_is_green_over_one_connection(host: Host, tmp_path: Path) -> None:
    count = "journalctl -o cat -t sshd | grep -c 'Accepted publickey'"
    before = int(host.output(count))
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from gpufleet.cli import main; main()", "verify"),
            *("inventories/sandbox.py", "--json", str(tmp_path / "report.json")),
        ],
        cwd=ROOT,
        env=os.environ | {"GPUFLEET_SANDBOX": SANDBOX},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = json.loads((tmp_path / "report.json").read_text())["hosts"].values()
    assert result["failed"] == 0
    assert result["passed"] >= 30
    assert int(host.output(count)) - before == 1


@pytest.mark.claim(
    "Each check of a host finds its own fault, and no other check does.",
    level=3,
)
@pytest.mark.parametrize("breakage", some(BREAKAGES, BREAKAGES[::6]), ids=lambda one: one.name)
def test_breakage_is_found_by_its_own_check(
    host: Host, connections: Connections, breakage: Breakage
) -> None:
    host.run(f"set -e\n{breakage.cause}")
    try:
        found = failing_checks(connections)
    finally:
        host.run(f"set -e\n{breakage.fix}")
    assert set(found) == set(breakage.found_by), found


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found_by_its_own_check(host: Host, connections: Connections, fault: str) -> None:
    with host.fault(fault):
        found = failing_checks(connections)
    assert set(found) == set(FAULTS[fault]), found


def test_all_checks_pass_after_the_fixes(host: Host, connections: Connections) -> None:
    assert failing_checks(connections) == {}
