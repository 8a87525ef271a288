"""The exporter on hosts: as packages and as a container, upgraded, broken, taken away again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from checking import verify
from containers import since
from deploying import ROOT, Outcome, deploy_command, run_deploy
from exporting import COUNTERS, IMAGE, collectors, gpus, import_exporter, scrape, temperatures
from snapshots import differences, snapshot

from gpufleet.sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

KINDS = ("ubuntu2204", "debian12", "el7")
WISHES: dict[str, dict[str, Any]] = {
    "ubuntu2204": {"exporter_counters": COUNTERS},
    "debian12": {"exporter_mode": "docker", "exporter_listen": "0.0.0.0", "exporter_port": 9500},
    "el7": {"driver_version": "550.144.03"},
}
ADDRESSES = {"ubuntu2204": "127.0.0.1:9400", "debian12": "127.0.0.1:9500", "el7": "127.0.0.1:9400"}
RECORD = "/var/lib/gpufleet/provenance.json"
DROP_IN = "/etc/systemd/system/nvidia-dcgm-exporter.service.d/gpufleet.conf"
UNIT = "gpufleet-dcgm-exporter"
VERSIONS = (
    "dpkg-query -W -f '${Package} ${Version} ${db:Status-Want}\\n' 'datacenter-gpu-manager-*'"
)
LEFT = ("/boot/initr", "/etc/nvidia-container-toolkit", "/etc/dnf/plugins/versionlock.list",
        "/lib/modules/3.10.0-1160.119.1.el7.x86_64/build")  # fmt: skip

Snapshot = dict[str, list[str]]


@pytest.fixture(scope="module")
def fleet(bare_host: HostFactory) -> dict[str, Host]:
    """Bare hosts whose docker has the exporter's image."""
    hosts = {kind: bare_host(kind) for kind in KINDS}
    for host in hosts.values():
        import_exporter(host)
    return hosts


@pytest.fixture(scope="module")
def before(fleet: dict[str, Host]) -> dict[str, Snapshot]:
    return {name: snapshot(host, *LEFT) for name, host in fleet.items()}


@pytest.fixture(scope="module")
def installed(fleet: dict[str, Host], before: dict[str, Snapshot]) -> Outcome:
    """gpu_node with an exporter on all of them."""
    done = deploy(*fleet.values())
    assert done.returncode == 0, done.output
    return done


def deploy(*hosts: Host, **data: Any) -> Outcome:
    return run_deploy("gpu_node", hosts, per_host=WISHES, exporter_enabled=True, **data)


def record(host: Host) -> dict[str, Any]:
    return dict(json.loads(host.get(RECORD))["exporter"])


def starts(host: Host) -> list[str]:
    return [since(host, unit) for unit in ("nvidia-dcgm", "nvidia-dcgm-exporter", UNIT, "docker")]


def test_every_gpu_has_metrics(fleet: dict[str, Host], installed: Outcome) -> None:
    modes = {name: record(host)["mode"] for name, host in fleet.items()}
    assert modes == {"ubuntu2204": "systemd", "debian12": "docker", "el7": "docker"}
    for name, host in fleet.items():
        text = scrape(host, ADDRESSES[name])
        assert len(temperatures(text)) == len(gpus(host)) > 0
        after = {"ubuntu2204": "4.8.3.002"}.get(name, "4.8.3")
        assert installed.report[name]["exporter"] == {"before": None, "after": after}
    ubuntu = fleet["ubuntu2204"]
    text = scrape(ubuntu)
    assert temperatures(text) == gpus(ubuntu), "the very ones"
    assert set(text.split()) & {"DCGM_FI_DEV_SM_CLOCK"} == set(), "the counters are the user's"
    assert collectors(ubuntu) == ["dcgm-exporter", "nv-hostengine"]
    assert collectors(fleet["el7"]) == ["dcgm-exporter"]
    assert "datacenter" not in fleet["el7"].output("rpm -qa")
    held = [line.split()[2] for line in ubuntu.output(VERSIONS).splitlines()]
    assert held == ["hold"] * 5


def test_it_listens_only_where_asked(fleet: dict[str, Host], installed: Outcome) -> None:
    ubuntu, debian = fleet["ubuntu2204"], fleet["debian12"]
    assert scrape(ubuntu, f"{ubuntu.address}:9400") == ""
    assert temperatures(scrape(debian, f"{debian.address}:9500"))
    assert "GF587" in installed.codes("ubuntu2204")
    assert "GF587" not in installed.codes("debian12")


def test_a_second_run_costs_one_command_and_changes_nothing(
    fleet: dict[str, Host], installed: Outcome
) -> None:
    earlier = {name: (starts(host), len(host.sessions())) for name, host in fleet.items()}
    done = deploy(*fleet.values())
    assert done.returncode == 0, done.output
    assert done.changes() == dict.fromkeys(KINDS, 0)
    for name, host in fleet.items():
        assert starts(host) == earlier[name][0]
        assert len(host.sessions()) == earlier[name][1] + 1


def test_the_checks_are_green(fleet: dict[str, Host], installed: Outcome) -> None:
    for name, result in verify(list(fleet.values()), exporter_enabled=True).items():
        assert result["failed"] == 0, result
        assert result["checks"]["exporter_metrics"]["outcome"] == "passed", name


BREAKAGES = {
    "exporter stopped": (
        "systemctl stop nvidia-dcgm-exporter",
        "systemctl start nvidia-dcgm-exporter",
        {"exporter_service"},
    ),
    "host engine not enabled": (
        "systemctl disable nvidia-dcgm", "systemctl enable nvidia-dcgm", {"exporter_service"},
    ),
    "listens for everybody": (
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
def test_what_is_broken_is_found_by_its_own_check(
    fleet: dict[str, Host], installed: Outcome, name: str
) -> None:
    host = fleet["ubuntu2204"]
    broken, mended, found_by = BREAKAGES[name]
    host.run(f"set -e\n{broken}")
    host.run("timeout 10 sh -c 'until curl -fsS 127.0.0.1:9400/metrics; do sleep 0.1; done'",
             check="service" not in str(found_by))  # fmt: skip
    try:
        (result,) = verify([host], **WISHES["ubuntu2204"]).values()
    finally:
        host.run(f"set -e\n{mended}")
    failed = {check for check, part in result["checks"].items() if part["outcome"] == "failed"}
    assert failed == found_by


def test_the_exporter_outlives_a_change_of_the_driver(
    fleet: dict[str, Host], installed: Outcome
) -> None:
    """It holds the GPUs, is stopped for the change, and shows the new driver after it."""
    ubuntu, el7 = fleet["ubuntu2204"], fleet["el7"]
    assert 'DCGM_FI_DRIVER_VERSION="580.178.04"' in scrape(ubuntu)
    done = run_deploy(
        "gpu_node",
        [ubuntu, el7],
        per_host={
            "ubuntu2204": {**WISHES["ubuntu2204"], "driver_version": "580.159.03"},
            "el7": {"driver_version": "550.163.01"},
        },
        exporter_enabled=True,
    )
    assert done.returncode == 0, done.output
    assert 'DCGM_FI_DRIVER_VERSION="580.159.03"' in scrape(ubuntu)
    assert temperatures(scrape(el7))
    assert record(el7)["driver"] == "550.163.01"
    WISHES["ubuntu2204"]["driver_version"] = "580.159.03"
    WISHES["el7"]["driver_version"] = "550.163.01"
    assert deploy(ubuntu, el7).changes() == {"ubuntu2204": 0, "el7": 0}


@pytest.mark.parametrize("kind", KINDS)
def test_it_comes_back_after_a_boot_and_after_docker(
    fleet: dict[str, Host], installed: Outcome, kind: str
) -> None:
    host = fleet[kind]
    answers = f"until curl -fsS {ADDRESSES[kind]}/metrics; do sleep 0.2; done"
    host.run("systemctl restart docker")
    host.run(f"timeout 30 sh -c '{answers}'")
    host.reboot()
    host.run(f"timeout 30 sh -c '{answers}'")
    assert len(temperatures(scrape(host, ADDRESSES[kind]))) == len(gpus(host))
    done = deploy(host)
    assert done.returncode == 0, done.output
    assert done.changes() == {kind: 0}


def test_where_the_driver_waits_for_a_boot_so_does_the_exporter(bare_host: HostFactory) -> None:
    host = bare_host("ubuntu2404")
    done = run_deploy("gpu_node", [host], exporter_enabled=True, driver_reboot="never")
    assert done.returncode == 0, done.output
    assert "run gpu_node again" in " ".join(done.report[host.name]["needs"])
    assert scrape(host) == ""
    host.reboot()
    done = run_deploy("gpu_node", [host], exporter_enabled=True, driver_reboot="never")
    assert done.returncode == 0, done.output
    assert temperatures(scrape(host)) == gpus(host)
    assert done.report[host.name]["needs"] == []
    again = run_deploy("gpu_node", [host], exporter_enabled=True, driver_reboot="never")
    assert again.changes() == {host.name: 0}


def test_another_version_moves_exporter_and_dcgm_together(
    fleet: dict[str, Host], installed: Outcome
) -> None:
    host = fleet["ubuntu2204"]
    done = deploy(host, exporter_version="4.8.2")
    assert done.returncode == 0, done.output
    assert "GF586" in done.codes(host.name)
    assert done.report[host.name]["exporter"] == {"before": "4.8.3.002", "after": "4.8.2"}
    lines = {line.split()[0]: line.split()[1:] for line in host.output(VERSIONS).splitlines()}
    assert lines["datacenter-gpu-manager-exporter"] == ["4.8.2-1", "hold"]
    assert {tuple(v) for n, v in lines.items() if "-4-" in n} == {("1:4.5.3-1", "hold")}
    assert 'Hostname="ubuntu2204"' in scrape(host), "of the older version"
    done = deploy(host)
    assert done.returncode == 0, done.output
    assert done.report[host.name]["exporter"]["after"] == "4.8.3.002"
    assert deploy(host).changes() == {host.name: 0}


def test_a_version_that_the_repository_lacks(fleet: dict[str, Host], installed: Outcome) -> None:
    host = fleet["ubuntu2204"]
    done = deploy(host, exporter_version="4.8.1")
    assert done.returncode == 1
    assert "GF313" in done.output
    assert "4.6.0" in done.output, "those that there are"
    assert temperatures(scrape(host)), "the old one goes on"
    assert deploy(host).returncode == 0


def test_from_packages_to_a_container_and_back(fleet: dict[str, Host], installed: Outcome) -> None:
    host = fleet["ubuntu2204"]
    done = deploy(host, exporter_mode="docker")
    assert done.returncode == 0, done.output
    assert collectors(host) == ["dcgm-exporter"]
    assert host.output("docker ps --format '{{.Names}}'") == UNIT
    assert "DCGM_FI_DEV_SM_CLOCK" not in scrape(host), "with the same counters"
    assert deploy(host, exporter_mode="docker").changes() == {host.name: 0}
    done = deploy(host, exporter_mode="systemd")
    assert done.returncode == 0, done.output
    assert collectors(host) == ["dcgm-exporter", "nv-hostengine"]
    assert host.output("docker ps -a --format '{{.Names}}'") == ""
    assert deploy(host, exporter_mode="systemd").changes() == {host.name: 0}


def test_an_image_that_cannot_be_had(fleet: dict[str, Host], installed: Outcome) -> None:
    host = fleet["debian12"]
    done = deploy(host, exporter_image="registry.invalid/none:1")
    assert done.returncode == 1
    assert "GF579" in done.output
    assert temperatures(scrape(host, ADDRESSES["debian12"])), "the old one goes on"
    assert deploy(host).changes() == {host.name: 0}


def test_an_exporter_that_does_not_come_up(fleet: dict[str, Host], installed: Outcome) -> None:
    host = fleet["ubuntu2204"]
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
    "sentence", ["Install DCGM", "Install dcgm-exporter", "Start it", "Record"]
)
def test_a_killed_run_is_made_up_for(
    fleet: dict[str, Host], installed: Outcome, tmp_path: Path, sentence: str
) -> None:
    """Killed as an operation of the exporter begins, or a moment later."""
    host = fleet["ubuntu2204"]
    version = "4.8.2" if sentence in ("Install DCGM", "Start it") else "4.8.3"
    wish = {host.name: {**WISHES[host.name], "exporter_version": version}}
    command = deploy_command("gpu_node", [host], tmp_path, wish, {"exporter_enabled": True})
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
    assert record(host)["version"].startswith(version)
    assert temperatures(scrape(host)) == gpus(host)
    assert deploy(host, exporter_version=version).changes() == {host.name: 0}


@pytest.mark.parametrize("kind", ["ubuntu2204", "el7"])
def test_a_removal_that_cannot_be_leaves_it_running(
    fleet: dict[str, Host], installed: Outcome, kind: str
) -> None:
    host = fleet[kind]
    assert deploy(host).returncode == 0
    with host.fault("module-busy"):
        done = run_deploy("remove", [host])
    assert done.returncode == 1
    assert "GF565" in done.codes(host.name)
    host.run("timeout 20 sh -c 'until curl -fsS 127.0.0.1:9400/metrics; do sleep 0.1; done'")
    assert deploy(host).changes() == {kind: 0}


def test_removal_takes_exactly_that_away(
    fleet: dict[str, Host], installed: Outcome, before: dict[str, Snapshot]
) -> None:
    hosts = list(fleet.values())
    assert deploy(*hosts).returncode == 0
    done = run_deploy("remove", hosts)
    assert done.returncode == 0, done.output
    for name, host in fleet.items():
        assert done.report[name]["exporter"]["after"] is None
        assert differences(before[name], snapshot(host, *LEFT)) == {}, name
        assert collectors(host) == []
    images = fleet["el7"].output("docker images --format '{{.Repository}}:{{.Tag}}'")
    assert images == IMAGE, "it was there before gpufleet"
