"""Alertmanager's configuration in the real program: receivers of alerts, and inhibitions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from gpufleet.monitoring.alert_models import load_alerts
from gpufleet.monitoring.alertmanager import NOBODY_RECEIVER, alertmanager_config
from gpufleet_sandbox.cluster.processes import end, free_ports, start
from gpufleet_sandbox.debian import debian_program
from gpufleet_sandbox.waiting import wait_until

pytestmark = pytest.mark.claim(
    "A node that is down silences its GPUs, on a real Alertmanager.",
    level=6,
)

NAMES = ("default", "critical", "warning", "info")
ALERTS = {alert.name: alert for alert in load_alerts().alerts}
SECONDS = 900
# Debian's program reads its templates from /usr/share, but its package is not installed. A mount
# namespace overlays them there.
WITH_TEMPLATES = (
    'mount -t overlay overlay -o "lowerdir=$SHARE:/usr/share" /usr/share && exec "$0" "$@"'
)


def written(folder: Path, *names: str) -> Path:
    path = folder / "alertmanager.yaml"
    config = alertmanager_config([{"name": name} for name in names])
    path.write_text(yaml.safe_dump(config))
    return path


def receiver(amtool: Path, config: Path, **labels: str) -> str:
    pairs = [f"{name}={value}" for name, value in labels.items()]
    command = [amtool, "config", "routes", "test", f"--config.file={config}", *pairs]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True)
    return done.stdout.strip()


def test_the_configuration_is_valid(amtool: Path, tmp_path: Path) -> None:
    for names in (NAMES, ("default",)):
        config = written(tmp_path, *names)
        done = subprocess.run(
            [amtool, "check-config", config],
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("names", "labels", "wanted"),
    [
        (NAMES, {"component": "gpu", "severity": "critical"}, "critical"),
        (NAMES, {"component": "gpu", "severity": "warning"}, "warning"),
        (NAMES, {"component": "gpu", "severity": "info"}, "info"),
        (NAMES, {"component": "etcd", "severity": "critical"}, "default"),
        (NAMES, {"component": "gpu", "severity": "unheard"}, "default"),
        (NAMES, {"alertname": "Watchdog", "severity": "none"}, NOBODY_RECEIVER),
        (("default",), {"component": "gpu", "severity": "critical"}, "default"),
        (("default",), {"component": "gpu", "severity": "warning"}, "default"),
        (("default",), {"component": "gpu", "severity": "info"}, NOBODY_RECEIVER),
    ],
)
def test_routes(
    names: tuple[str, ...], labels: dict[str, str], wanted: str, amtool: Path, tmp_path: Path
) -> None:
    assert receiver(amtool, written(tmp_path, *names), **labels) == wanted


def test_every_alert_has_its_receiver(amtool: Path, tmp_path: Path) -> None:
    config = written(tmp_path, *NAMES)
    for severity in {alert.severity for alert in ALERTS.values()}:
        assert receiver(amtool, config, component="gpu", severity=severity) == severity


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real Alertmanager with our routes and inhibitions."""
    folder = tmp_path_factory.mktemp("alertmanager")
    [port] = free_ports(1)
    flags = {
        "config.file": written(folder, *NAMES),
        "storage.path": folder / "data",
        "web.listen-address": f"127.0.0.1:{port}",
        "cluster.listen-address": "",
    }
    program = debian_program("prometheus-alertmanager", "prometheus-alertmanager")
    words = [f"--{name}={value}" for name, value in flags.items()]
    log = folder / "alertmanager.log"
    command = ["unshare", "--mount", "sh", "-c", WITH_TEMPLATES, program, *words]
    process = start("alertmanager", command, log, {"SHARE": str(program.parents[1] / "share")})
    url = f"http://127.0.0.1:{port}/api/v2"

    def answers() -> bool:
        assert process.alive, log.read_text()
        try:
            return requests.get(f"{url}/status", timeout=5).ok
        except requests.ConnectionError:
            return False

    assert wait_until(answers, SECONDS), log.read_text()
    yield url
    end([process])


def labels_of(name: str, **more: str) -> dict[str, str]:
    ours = {"severity": ALERTS[name].severity, "component": "gpu"} if name in ALERTS else {}
    return {"alertname": name, **ours, **more}


def silenced(url: str, cluster: str, *alerts: dict[str, str]) -> set[str]:
    """Names of those among alerts that fire together and are not sent because of another one.

    Alertmanager's inhibitor gets alerts after they were accepted, one by one: a pair that is
    posted later and has its effect shows that it has seen all of them.
    """
    last = f"{cluster}-last"
    fire(url, cluster, *alerts)
    fire(url, last, labels_of("GpuNodeNotReady", **A), labels_of("GpuMissing", **A0))

    def all_seen() -> bool:
        return inhibited(url, last) == {"GpuMissing"}

    assert wait_until(all_seen, SECONDS), inhibited(url, last)
    return inhibited(url, cluster)


def fire(url: str, cluster: str, *alerts: dict[str, str]) -> None:
    now = datetime.now(timezone.utc)
    body = [
        {
            "labels": {**labels, "cluster": cluster},
            "startsAt": now.isoformat(),
            "endsAt": (now + timedelta(minutes=5)).isoformat(),
        }
        for labels in alerts
    ]
    requests.post(f"{url}/alerts", json=body, timeout=10).raise_for_status()


def inhibited(url: str, cluster: str) -> set[str]:
    query = {"filter": f'cluster="{cluster}"'}
    found: list[dict[str, Any]] = requests.get(f"{url}/alerts", params=query, timeout=10).json()
    return {one["labels"]["alertname"] for one in found if one["status"]["inhibitedBy"]}


A, B = {"node": "node-a"}, {"node": "node-b"}
A0, A1 = {**A, "UUID": "GPU-a0"}, {**A, "UUID": "GPU-a1"}


@pytest.mark.parametrize("down", ["GpuNodeNotReady", "KubeNodeNotReady", "KubeNodeUnreachable"])
def test_a_node_that_is_down_silences_its_gpus(down: str, alertmanager: str) -> None:
    lost = silenced(
        alertmanager,
        f"down-{down}",
        labels_of(down, **A),
        labels_of("GpuMissing", **A0),
        labels_of("GpuPluginNotAdvertising", **A),
        labels_of("GpuHot", **B, UUID="GPU-b0"),
        labels_of("GpuDriverVersionsDiffer"),
        labels_of("NodeDiskFull", **A),
    )
    assert lost == {"GpuMissing", "GpuPluginNotAdvertising"}


def test_gpus_of_a_node_that_is_up_are_reported(alertmanager: str) -> None:
    reported = [labels_of("GpuHot", **A0), labels_of("GpuEccUncorrectable", **A0)]
    assert silenced(alertmanager, "up", *reported, labels_of("GpuNodeNotReady", **B)) == set()


def test_a_gpu_that_is_gone_silences_what_follows_from_it(alertmanager: str) -> None:
    lost = silenced(
        alertmanager,
        "gone",
        labels_of("GpuFellOffBus", **A0),
        labels_of("GpuMissing", **A0),
        labels_of("GpuNvlinkErrors", **A0),
        labels_of("GpuNotAllocatable", **A),
        labels_of("GpuCountDiffers", **A),
        labels_of("GpuHot", **A1),
    )
    assert lost == {"GpuMissing", "GpuNvlinkErrors", "GpuNotAllocatable", "GpuCountDiffers"}


def test_another_gpu_that_is_gone_silences_no_missing_one(alertmanager: str) -> None:
    reported = [labels_of("GpuFellOffBus", **A0), labels_of("GpuMissing", **A1)]
    assert silenced(alertmanager, "two", *reported) == set()


def test_causes_outweigh_their_signs(alertmanager: str) -> None:
    assert silenced(
        alertmanager,
        "signs",
        labels_of("GpuExporterDown", **A),
        labels_of("GpuMetricsMissing", **A),
        labels_of("GpuRowRemapFailed", **A0),
        labels_of("GpuRowRemapPending", **A0),
        labels_of("GpuRowsRemapped", **A1),
    ) == {"GpuMetricsMissing", "GpuRowRemapPending"}


def test_every_alert_that_a_rule_names_exists() -> None:
    config = alertmanager_config([{"name": "default"}])
    text = yaml.safe_dump(config["inhibit_rules"])
    named = {word for word in text.replace('"', "|").split("|") if word.startswith("Gpu")}
    assert named
    assert named <= set(ALERTS)
