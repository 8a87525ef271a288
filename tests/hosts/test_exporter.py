"""The exporter on hosts: from packages and as a container, upgraded, rebooted, removed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from checking import verify
from containers import started_at
from deploying import Outcome, run_deploy
from exporting import (
    COUNTERS,
    IMAGE,
    collectors,
    gpus,
    import_exporter,
    rival,
    scrape,
    temperatures,
)
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests import selection
from tests.hosts.conftest import HostFactory

pytestmark = pytest.mark.hosts

KINDS = ("ubuntu2204", "debian12", *(["el7"] if selection.extended else []))
MODES = {"ubuntu2204": "systemd", "debian12": "docker", "el7": "docker"}
SETTINGS: dict[str, dict[str, Any]] = {
    "ubuntu2204": {"exporter_counters": COUNTERS},
    "debian12": {"exporter_mode": "docker", "exporter_listen": "0.0.0.0", "exporter_port": 9500},
    "el7": {"driver_version": "550.144.03"},
}
ADDRESSES = {"ubuntu2204": "127.0.0.1:9400", "debian12": "127.0.0.1:9500", "el7": "127.0.0.1:9400"}
RECORD = "/var/lib/gpufleet/provenance.json"
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
    """gpu_node with an exporter on all hosts."""
    done = deploy(*fleet.values())
    assert done.returncode == 0, done.output
    return done


def deploy(*hosts: Host, **data: Any) -> Outcome:
    return run_deploy("gpu_node", hosts, per_host=SETTINGS, exporter_enabled=True, **data)


def record(host: Host) -> dict[str, Any]:
    return dict(json.loads(host.get(RECORD))["exporter"])


def starts(host: Host) -> list[str]:
    return [
        started_at(host, unit) for unit in ("nvidia-dcgm", "nvidia-dcgm-exporter", UNIT, "docker")
    ]


@pytest.mark.claim(
    "No exporter is installed beside another exporter or host engine, or at a port in use.",
    level=3,
)
@pytest.mark.extended
def test_a_bare_host_with_another_exporter_is_not_touched(
    fleet: dict[str, Host], before: dict[str, Snapshot]
) -> None:
    """test_exporter_refused.py has other collectors, on a GPU node."""
    host = fleet["ubuntu2204"]
    host.put("/root/counters.csv", COUNTERS)
    with rival(host, "an exporter of a DaemonSet"):
        done = deploy(host)
    host.run("rm /root/counters.csv")
    assert done.returncode == 1
    assert "GF581" in done.codes(host.name)
    assert "of a pod of Kubernetes" in done.output
    assert differences(before[host.name], snapshot(host, *LEFT)) == {}


@pytest.mark.claim(
    "The exporter, as packages or as a container, has metrics of every GPU.",
    level=3,
)
def test_every_gpu_has_metrics(fleet: dict[str, Host], installed: Outcome) -> None:
    modes = {name: record(host)["mode"] for name, host in fleet.items()}
    assert modes == {name: MODES[name] for name in KINDS}
    for name, host in fleet.items():
        text = scrape(host, ADDRESSES[name])
        assert len(temperatures(text)) == len(gpus(host)) > 0
        after = {"ubuntu2204": "4.8.3.002"}.get(name, "4.8.3")
        assert installed.report[name]["exporter"] == {"before": None, "after": after}
    ubuntu = fleet["ubuntu2204"]
    text = scrape(ubuntu)
    assert temperatures(text) == gpus(ubuntu), "the same GPUs"
    assert set(text.split()) & {"DCGM_FI_DEV_SM_CLOCK"} == set(), "the counters are the user's"
    assert collectors(ubuntu) == ["dcgm-exporter", "nv-hostengine"]
    held = [line.split()[2] for line in ubuntu.output(VERSIONS).splitlines()]
    assert held == ["hold"] * 5


@pytest.mark.extended
def test_a_container_needs_no_package(fleet: dict[str, Host], installed: Outcome) -> None:
    assert collectors(fleet["el7"]) == ["dcgm-exporter"]
    assert "datacenter" not in fleet["el7"].output("rpm -qa")


def test_it_listens_only_on_the_configured_address(
    fleet: dict[str, Host], installed: Outcome
) -> None:
    ubuntu, debian = fleet["ubuntu2204"], fleet["debian12"]
    assert scrape(ubuntu, f"{ubuntu.address}:9400") == ""
    assert temperatures(scrape(debian, f"{debian.address}:9500"))
    assert "GF587" in installed.codes("ubuntu2204")
    assert "GF587" not in installed.codes("debian12")


@pytest.mark.claim(
    "A second run with the exporter takes one command per host.",
    level=3,
)
def test_a_second_run_takes_one_command_and_changes_nothing(
    fleet: dict[str, Host], installed: Outcome
) -> None:
    earlier = {name: (starts(host), len(host.sessions())) for name, host in fleet.items()}
    done = deploy(*fleet.values())
    assert done.returncode == 0, done.output
    assert done.changes() == dict.fromkeys(KINDS, 0)
    for name, host in fleet.items():
        assert starts(host) == earlier[name][0]
        assert len(host.sessions()) == earlier[name][1] + 1


@pytest.mark.extended
def test_the_checks_are_green(fleet: dict[str, Host], installed: Outcome) -> None:
    for name, result in verify(list(fleet.values()), exporter_enabled=True).items():
        assert result["failed"] == 0, result
        assert result["checks"]["exporter_metrics"]["outcome"] == "passed", name


@pytest.mark.extended
def test_the_exporter_survives_a_change_of_the_driver(
    fleet: dict[str, Host], installed: Outcome
) -> None:
    """It uses the GPUs, is stopped for the change, and reports the new driver afterwards."""
    ubuntu, el7 = fleet["ubuntu2204"], fleet["el7"]
    assert 'DCGM_FI_DRIVER_VERSION="580.178.04"' in scrape(ubuntu)
    done = run_deploy(
        "gpu_node",
        [ubuntu, el7],
        per_host={
            "ubuntu2204": {**SETTINGS["ubuntu2204"], "driver_version": "580.159.03"},
            "el7": {"driver_version": "550.163.01"},
        },
        exporter_enabled=True,
        driver_allow_change=True,
    )
    assert done.returncode == 0, done.output
    assert 'DCGM_FI_DRIVER_VERSION="580.159.03"' in scrape(ubuntu)
    assert temperatures(scrape(el7))
    assert record(el7)["driver"] == "550.163.01"
    SETTINGS["ubuntu2204"]["driver_version"] = "580.159.03"
    SETTINGS["el7"]["driver_version"] = "550.163.01"
    assert deploy(ubuntu, el7).changes() == {"ubuntu2204": 0, "el7": 0}


@pytest.mark.extended
@pytest.mark.parametrize("kind", KINDS)
def test_it_returns_after_a_reboot_and_a_restart_of_docker(
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


@pytest.mark.extended
def test_the_exporter_waits_for_the_drivers_reboot(bare_host: HostFactory) -> None:
    host = bare_host("ubuntu2404")
    done = run_deploy("gpu_node", [host], exporter_enabled=True, node_reboot="never")
    assert done.returncode == 0, done.output
    assert "run again" in " ".join(done.report[host.name]["needs"])
    assert scrape(host) == ""
    host.reboot()
    done = run_deploy("gpu_node", [host], exporter_enabled=True, node_reboot="never")
    assert done.returncode == 0, done.output
    assert temperatures(scrape(host)) == gpus(host)
    assert done.report[host.name]["needs"] == []
    again = run_deploy("gpu_node", [host], exporter_enabled=True, node_reboot="never")
    assert again.changes() == {host.name: 0}, again.output


@pytest.mark.extended
def test_exporter_and_dcgm_change_version_together(
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
    assert 'Hostname="ubuntu2204"' in scrape(host), "a label of the older version"
    done = deploy(host)
    assert done.returncode == 0, done.output
    assert done.report[host.name]["exporter"]["after"] == "4.8.3.002"
    assert deploy(host).changes() == {host.name: 0}


@pytest.mark.extended
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


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["ubuntu2204", "el7"])
def test_a_refused_removal_leaves_it_running(
    fleet: dict[str, Host], installed: Outcome, kind: str
) -> None:
    host = fleet[kind]
    assert deploy(host).returncode == 0
    with host.fault("module-busy"):
        done = run_deploy("remove", [host])
    assert done.returncode == 1
    assert "GF552" in done.codes(host.name)
    host.run("timeout 20 sh -c 'until curl -fsS 127.0.0.1:9400/metrics; do sleep 0.1; done'")
    assert deploy(host).changes() == {kind: 0}


@pytest.mark.claim("Removing the exporter restores the host.", level=3)
def test_removal_restores_the_host(
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
    images = fleet["debian12"].output("docker images --format '{{.Repository}}:{{.Tag}}'")
    assert images == IMAGE, "it was there before gpufleet"
