"""`gpufleet doctor --fix` on a real host: a stopped service; a CDI file, stale and missing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from deploying import run_deploy
from examining import run_gpufleet, write_inventory

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim(
        "`doctor --fix` starts a stopped service of the driver and writes a stale CDI "
        "specification again; without a yes it changes nothing.",
        level=3,
    ),
]

PERSISTENCED, SPEC = "nvidia-persistenced.service", "/var/run/cdi/nvidia.yaml"
OLD = "libnvidia-ml.so.470.1"  # the library of another driver
Doctor = Callable[..., subprocess.CompletedProcess[str]]


def doctor_of(host: Host, folder: Path) -> Doctor:
    """`doctor(words…)`: runs the command on the host, without a terminal."""
    return partial(run_gpufleet, "doctor", write_inventory(folder, [host]))


def state(host: Host) -> str:
    """The state of the service, and the text of the specification."""
    return host.run(f"systemctl is-active {PERSISTENCED}; cat {SPEC}", check=False).stdout


def test_faults_are_fixed_one_by_one(bare_host: HostFactory, tmp_path: Path) -> None:
    host = bare_host("ubuntu2204")
    assert run_deploy("gpu_node", [host]).returncode == 0
    doctor = doctor_of(host, tmp_path)
    healthy = state(host)

    host.run(f"systemctl stop {PERSISTENCED}; sed -i 's/libnvidia-ml[.]so[.][0-9.]*/{OLD}/' {SPEC}")
    broken = state(host)
    assert broken != healthy
    assert doctor().returncode == 1
    for words in ((), ("--fix", "chain.cdi"), ("--fix", "gpu.lost", "--yes")):
        doctor(*words)
        assert state(host) == broken, f"changed by {words}"

    first = doctor("--fix", "chain.cdi", "--yes")
    assert "systemctl restart nvidia-cdi-refresh.service" in first.stdout
    assert "chain.cdi was WARNING, is PASS; verdict was WARNING, is WARNING" in first.stdout
    assert first.returncode == 1, "the other fault is still there"
    assert state(host).startswith("inactive")

    second = doctor("--fix", "chain.persistence", "--yes")
    assert "chain.persistence was WARNING, is PASS; verdict was WARNING, is PASS" in second.stdout
    assert (second.returncode, state(host)) == (0, healthy), second.stdout + second.stderr

    host.run(f"rm {SPEC}")
    third = doctor("--fix", "chain.cdi", "--yes", "--quiet")
    assert (third.returncode, state(host)) == (0, healthy), third.stdout + third.stderr
    assert run_deploy("gpu_node", [host]).changes() == {host.name: 0}
