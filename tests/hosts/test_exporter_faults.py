"""The exporter broken, killed or unavailable: reported, and fixed by the next run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from checking import verify
from deploying import ROOT, Outcome, deploy_command, run_deploy
from exporting import COUNTERS, gpus, scrape, temperatures

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

RECORD = "/var/lib/gpufleet/provenance.json"
DROP_IN = "/etc/systemd/system/nvidia-dcgm-exporter.service.d/gpufleet.conf"
SETTINGS = {"exporter_counters": COUNTERS}


@pytest.fixture(scope="module")
def host(bare_host: HostFactory) -> Host:
    """A GPU node with an exporter from packages."""
    found = bare_host("ubuntu2204")
    done = deploy(found)
    assert done.returncode == 0, done.output
    return found


def deploy(host: Host, **data: Any) -> Outcome:
    return run_deploy("gpu_node", [host], **{"exporter_enabled": True, **SETTINGS, **data})


BREAKAGES = {
    "exporter stopped": (
        "systemctl stop nvidia-dcgm-exporter",
        "systemctl start nvidia-dcgm-exporter",
        {"exporter_service"},
    ),
    "host engine not enabled": (
        "systemctl disable nvidia-dcgm", "systemctl enable nvidia-dcgm", {"exporter_service"},
    ),
    "listens on all addresses": (
        f"cp {DROP_IN} /root/kept && sed -i 's/127.0.0.1:9400/0.0.0.0:9400/' {DROP_IN} && "
        "systemctl daemon-reload && systemctl restart nvidia-dcgm-exporter",
        f"mv /root/kept {DROP_IN} && systemctl daemon-reload && "
        "systemctl restart nvidia-dcgm-exporter",
        {"exporter_listens"},
    ),
    "no temperatures": (
        "sed -i 's/GPU_TEMP/SM_CLOCK/' /etc/dcgm-exporter/gpufleet-counters.csv && "
        "systemctl restart nvidia-dcgm-exporter",
        "sed -i 's/SM_CLOCK/GPU_TEMP/' /etc/dcgm-exporter/gpufleet-counters.csv && "
        "systemctl restart nvidia-dcgm-exporter",
        {"exporter_metrics"},
    ),
    "another program": (
        "mv /usr/bin/dcgm-exporter /root/kept && printf '#!/bin/sh\\necho 1.2.3\\n' "
        "> /usr/bin/dcgm-exporter && chmod 755 /usr/bin/dcgm-exporter",
        "mv /root/kept /usr/bin/dcgm-exporter",
        {"exporter_version"},
    ),
    "not held": (
        "apt-mark unhold datacenter-gpu-manager-exporter",
        "apt-mark hold datacenter-gpu-manager-exporter",
        {"exporter_packages"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_breakage_is_found_by_its_own_check(host: Host, name: str) -> None:
    cause, fix, found_by = BREAKAGES[name]
    host.run(f"set -e\n{cause}")
    host.run("timeout 10 sh -c 'until curl -fsS 127.0.0.1:9400/metrics; do sleep 0.1; done'",
             check="service" not in str(found_by))  # fmt: skip
    try:
        (result,) = verify([host], **SETTINGS).values()
    finally:
        host.run(f"set -e\n{fix}")
    failed = {check for check, part in result["checks"].items() if part["outcome"] == "failed"}
    assert failed == found_by


def test_a_version_that_the_repository_lacks(host: Host) -> None:
    done = deploy(host, exporter_version="4.8.1")
    assert done.returncode == 1
    assert "GF313" in done.output
    assert "4.6.0" in done.output, "an available version"
    assert temperatures(scrape(host)), "the old one keeps running"
    assert deploy(host).returncode == 0


def test_an_image_that_is_unavailable(host: Host) -> None:
    done = deploy(host, exporter_mode="docker", exporter_image="registry.invalid/none:1")
    assert done.returncode == 1
    assert "GF579" in done.output
    assert temperatures(scrape(host)), "the old one keeps running"
    assert deploy(host).changes() == {host.name: 0}


def test_an_exporter_that_does_not_start(host: Host) -> None:
    host.run("mv /usr/bin/dcgm-exporter /root/kept && ln -s /bin/false /usr/bin/dcgm-exporter")
    host.run("systemctl stop nvidia-dcgm-exporter")
    try:
        done = deploy(host)
    finally:
        host.run("mv /root/kept /usr/bin/dcgm-exporter")
    assert done.returncode == 1
    assert "GF588" in done.output
    assert deploy(host).returncode == 0
    assert temperatures(scrape(host))


@pytest.mark.parametrize(
    "sentence",
    ["Install DCGM", "Install dcgm-exporter", "Start the exporter", "Record"],
)
def test_the_run_after_a_killed_one_converges(host: Host, tmp_path: Path, sentence: str) -> None:
    """Killed at the start of an operation of the exporter, or shortly after."""
    version = "4.8.2" if sentence in ("Install DCGM", "Start the exporter") else "4.8.3"
    per_host = {host.name: {**SETTINGS, "exporter_version": version}}
    command = deploy_command("gpu_node", [host], tmp_path, per_host, {"exporter_enabled": True})
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout
        reached = any(f"Starting operation: Exporter | {sentence}" in x for x in process.stdout)
        os.killpg(process.pid, signal.SIGKILL)
    assert reached
    done = deploy(host, exporter_version=version)
    assert done.returncode == 0, done.output
    assert json.loads(host.get(RECORD))["exporter"]["version"].startswith(version)
    assert temperatures(scrape(host)) == gpus(host)
    assert deploy(host, exporter_version=version).changes() == {host.name: 0}
