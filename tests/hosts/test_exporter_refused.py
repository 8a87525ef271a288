"""The exporter is refused: another collector runs, the port is taken, a kubelet runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from deploying import Outcome, run_deploy
from exporting import IMAGE, import_exporter, scrape, temperatures
from snapshots import differences, snapshot

from gpufleet_sandbox import Host
from tests.hosts.conftest import HostFactory
from tests.selection import some

pytestmark = pytest.mark.hosts

PROGRAM = "/etc/sim/dcgm-exporter --collectors /root/counters.csv --address"
RUN = "systemd-run -q --collect --unit"
DOCKER = f"docker run -d --network host --runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all {IMAGE}"
# A rival: commands that start and stop it, code of the finding, words of its message.
RIVALS = {
    "an exporter of a DaemonSet": (
        f"{RUN} in-a-pod --slice kubepods-pod7.slice {PROGRAM} 127.0.0.1:9400",
        "systemctl stop in-a-pod", "GF581", "of a pod of Kubernetes",
    ),
    "the user's host engine": (
        "systemctl start nvidia-dcgm", "systemctl stop nvidia-dcgm",
        "GF581", "DCGM's host engine (process", "of nvidia-dcgm.service",
    ),
    "an exporter of another unit at another port": (
        f"{RUN} by-hand {PROGRAM} 127.0.0.1:19400", "systemctl stop by-hand",
        "GF581", "dcgm-exporter (process", "of by-hand.service",
    ),
    "an exporter in a container": (
        f"{DOCKER} --address 127.0.0.1:9400 | cut -c1-12 > /root/id",
        "docker rm -f $(cat /root/id)", "GF581", "in container",
    ),
    "an exporter under another name": (
        f"cp /etc/sim/dcgm-exporter /root/starship && {RUN} renamed /root/starship "
        "--collectors /root/counters.csv --address 127.0.0.1:9400",
        "systemctl stop renamed", "GF581", "Alibaba's renamed dcgm-exporter",
    ),
    "a process known only by its library": (
        f"cp /etc/sim/dcgm-exporter /root/telemetry && {RUN} secret /root/telemetry "
        "--collectors /root/counters.csv --address 127.0.0.1:19400",
        "systemctl stop secret", "GF581", "telemetry (process", "of secret.service",
    ),
    "something else at the port": (
        f"{RUN} web busybox httpd -f -p 9400", "systemctl stop web",
        "GF582", "of web.service) already listens on 127.0.0.1:9400",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def host(bare_host: HostFactory) -> Host:
    """A GPU node without gpufleet's exporter, with DCGM installed by hand."""
    found = bare_host("debian12")
    done = run_deploy("gpu_node", [found])
    assert done.returncode == 0, done.output
    assert done.report[found.name]["exporter"] == {"before": None, "after": None}
    import_exporter(found)
    found.put("/root/counters.csv", "DCGM_FI_DEV_GPU_TEMP, gauge, Temperature\n")
    found.run("apt-get install -y -q datacenter-gpu-manager-4-core", timeout=120)
    return found


@contextmanager
def rival(host: Host, name: str) -> Iterator[None]:
    start, stop, *_ = RIVALS[name]
    host.run(f"set -e\n{start}")
    host.run("timeout 10 sh -c 'until grep -qi :24B8 /proc/net/tcp /proc/net/tcp6 || "
             "pgrep -f \"hostengine|:19400\"; do sleep 0.1; done'")  # fmt: skip
    try:
        yield
    finally:
        host.run(stop)


def deploy(host: Host, enabled: object = True, deploy: str = "gpu_node") -> Outcome:
    return run_deploy(deploy, [host], exporter_enabled=enabled)


@pytest.mark.parametrize(
    "name", some(RIVALS, ["an exporter of a DaemonSet", "something else at the port"])
)
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


@pytest.mark.extended
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


@pytest.mark.extended
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
