"""The exporter is refused: another collector runs, the port is taken, a kubelet runs."""

from __future__ import annotations

import pytest
from deploying import Outcome, run_deploy
from exporting import RIVALS, import_exporter, rival, scrape, temperatures
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory

pytestmark = [pytest.mark.hosts, pytest.mark.extended]


@pytest.fixture(scope="module")
def host(bare_host: HostFactory) -> Host:
    """A GPU node without gpufleet's exporter, with DCGM installed by hand."""
    found = bare_host("debian12")
    done = run_deploy("gpu_node", [found])
    assert done.returncode == 0, done.output
    assert done.report[found.name]["exporter"] == {"before": None, "after": None}
    import_exporter(found)
    found.put("/root/counters.csv", "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature\n")
    found.run("apt-get install -y -q datacenter-gpu-manager-4-core", timeout=900)
    return found


def deploy(host: Host, enabled: object = True, deploy: str = "gpu_node") -> Outcome:
    return run_deploy(deploy, [host], exporter_enabled=enabled)


@pytest.mark.parametrize("name", RIVALS)
def test_it_is_refused_with_the_reason(host: Host, name: str) -> None:
    _, _, code, *words = RIVALS[name]
    with rival(host, name):
        was = snapshot(host)
        done = deploy(host)
        assert done.returncode == 1
        assert code in done.codes(host.name)
        (message,) = {f["message"] for f in done.report[host.name]["findings"] if f["code"] == code}
        for word in words:
            assert word in message
        automatic = deploy(host, "auto")
        assert automatic.returncode == 0, automatic.output
        severities = {f["code"]: f["severity"] for f in automatic.report[host.name]["findings"]}
        assert severities[code] == "warning"
        assert automatic.changes() == {host.name: 0}
        assert differences(was, snapshot(host)) == {}


def test_preflight_reports_the_refusal_and_the_plan(host: Host) -> None:
    was = snapshot(host)
    with rival(host, "an exporter of another unit at another port"):
        done = deploy(host, deploy="preflight")
        assert done.returncode == 1
        assert "GF581" in done.output
    done = deploy(host, deploy="preflight")
    assert done.returncode == 0, done.output
    assert done.report[host.name]["plan"]["exporter"]["mode"] == "systemd"
    said = " ".join(done.output.split())  # a terminal's width folds lines
    assert "start nvidia-dcgm.service, nvidia-dcgm-exporter.service" in said
    assert differences(was, snapshot(host)) == {}


def test_on_a_node_with_a_kubelet_it_is_left_to_the_cluster(host: Host) -> None:
    unit = "/etc/systemd/system/kubelet.service"
    host.put(unit, "[Service]\nExecStart=/bin/sleep infinity\n")
    host.run("systemctl daemon-reload && systemctl start kubelet")
    try:
        done = deploy(host, "auto")
        assert done.returncode == 0, done.output
        assert "GF580" in done.codes(host.name)
        assert done.report[host.name]["plan"]["exporter"] is None
        assert scrape(host) == ""
    finally:
        host.run(f"systemctl stop kubelet && rm {unit} && systemctl daemon-reload")


def test_dcgm_3_is_not_replaced(host: Host) -> None:
    host.run("apt-get install -y -q datacenter-gpu-manager datacenter-gpu-manager-4-core-")
    try:
        done = run_deploy("gpu_node", [host], exporter_enabled=True, exporter_mode="systemd")
        assert done.returncode == 1
        assert "GF589" in done.codes(host.name)
        assert "1:3.3.9" in host.output("dpkg-query -W datacenter-gpu-manager")
    finally:
        host.run("apt-get purge -y -q datacenter-gpu-manager")


def test_it_is_installed_once_nothing_conflicts(host: Host) -> None:
    done = deploy(host, "auto")
    assert done.returncode == 0, done.output
    assert len(temperatures(scrape(host))) == 1
    assert deploy(host).changes() == {host.name: 0}
