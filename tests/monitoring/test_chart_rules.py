"""The rules of the real kube-prometheus-stack are silent on healthy clusters of each kind.

The chart is rendered with the values that gpufleet plans for the cluster, its Services select pods
as Prometheus would, and promtool evaluates its rules together with gpufleet's.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpufleet.kube.facts import ServerVersion
from gpufleet.kube.system_pods import parse_system_pods
from gpufleet.monitoring.alert_models import load_alerts
from gpufleet.monitoring.alert_rules import rule_groups
from gpufleet_sandbox.cluster.programs import helm
from gpufleet_sandbox.debian import debian_program
from tests.unit.gpu_stack.gpu_clusters import FACTS, stack, values
from tests.unit.monitoring.control_planes import CLUSTERS, proxy_config

pytestmark = pytest.mark.claim(
    "The rules of the real charts and ours are silent on healthy clusters of nine kinds, "
    "with `GPUFLEET_CHARTS`.",
    level=6,
)

CHART = "kube-prometheus-stack"
MINUTES = 90
VERSIONS = {36: "88.5.3", 24: "72.9.1", 18: "45.10.1"}
# series of every cluster; if they are absent, alerts about the monitoring fire
ALWAYS = [
    'up{job="apiserver", namespace="default", instance="192.0.2.1:6443"}',
    'up{job="kubelet", metrics_path="/metrics", instance="192.0.2.1:10250"}',
    'up{job="node-exporter", namespace="monitoring", instance="192.0.2.1:9100"}',
    'up{job="kube-state-metrics", namespace="monitoring", instance="10.0.0.9:8080"}',
]


@pytest.fixture(scope="module")
def archives() -> Path:
    folder = Path(os.environ.get("GPUFLEET_CHARTS", ""))
    wanted = [f"{CHART}-{version}.tgz" for version in VERSIONS.values()]
    if missing := [name for name in wanted if not (folder / name).is_file()]:
        pytest.skip(f"GPUFLEET_CHARTS names no folder with {', '.join(missing)}")
    return folder


def planned(kind: str, minor: int) -> dict[str, Any]:
    pods, address = CLUSTERS[kind]
    found = parse_system_pods(pods, {"kube-proxy": proxy_config(address)})
    server = ServerVersion(1, minor, f"v1.{minor}.0")
    return dict(values(stack(replace(FACTS, server=server, system_pods=found)), CHART))


def rendered(archives: Path, folder: Path, minor: int, given: dict[str, Any]) -> list[Any]:
    """The chart's objects."""
    (folder / "values.yaml").write_text(yaml.safe_dump(given))
    archive = archives / f"{CHART}-{VERSIONS[minor]}.tgz"
    done = subprocess.run(
        [helm(3, print), "template", CHART, archive, "-n", "monitoring", "-f", "values.yaml",
         "--kube-version", f"1.{minor}.0"],
        cwd=folder, capture_output=True, text=True, timeout=900, check=True,
    )  # fmt: skip
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def scraped(objects: list[Any], pods: list[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    """`up` of each pod that a Service of the chart selects."""
    for service in objects:
        wanted = service["spec"].get("selector") if service["kind"] == "Service" else None
        if not wanted or service["metadata"].get("namespace") != "kube-system":
            continue
        job = service["metadata"]["labels"]["jobLabel"]
        for number, pod in enumerate(pods):
            if not wanted.items() <= pod["metadata"]["labels"].items():
                continue
            for port in service["spec"]["ports"]:
                instance = f"192.0.2.{number + 1}:{port['targetPort']}"
                about = f'job="{job}", namespace="kube-system", instance="{instance}"'
                yield f"up{{{about}}}", int(port["targetPort"] in pod["opened"])


def firing(folder: Path, objects: list[Any], pods: list[dict[str, Any]]) -> str:
    """The alerts that fire according to promtool, or "" if no alert fires."""
    groups = [
        group
        for each in objects
        if each["kind"] == "PrometheusRule"
        for group in each["spec"]["groups"]
    ]
    content = {"groups": [*groups, *rule_groups(load_alerts())]}
    (folder / "rules.yaml").write_text(yaml.safe_dump(content))
    series = [*((name, 1) for name in ALWAYS), *scraped(objects, pods)]
    quiet = 'alertname!~"Watchdog|InfoInhibitor"'
    expression = f'count by (alertname, job) (ALERTS{{alertstate="firing", {quiet}}})'
    test = {
        "interval": "1m",
        "input_series": [{"series": s, "values": f"{v}x{MINUTES}"} for s, v in series],
        "promql_expr_test": [{"expr": expression, "eval_time": "80m", "exp_samples": []}],
    }
    suite = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (folder / "tests.yaml").write_text(yaml.safe_dump(suite))
    done = subprocess.run(
        [debian_program("prometheus", "promtool"), "test", "rules", "tests.yaml"],
        cwd=folder, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.parametrize("kind", CLUSTERS)
def test_nothing_fires_on_a_healthy_cluster(kind: str, archives: Path, tmp_path: Path) -> None:
    objects = rendered(archives, tmp_path, 36, planned(kind, 36))
    assert firing(tmp_path, objects, CLUSTERS[kind][0]) == ""


@pytest.mark.parametrize("minor", [24, 18])
@pytest.mark.parametrize("kind", ["kubeadm", "k3s"])
def test_nothing_fires_with_older_charts(
    kind: str, minor: int, archives: Path, tmp_path: Path
) -> None:
    objects = rendered(archives, tmp_path, minor, planned(kind, minor))
    assert firing(tmp_path, objects, CLUSTERS[kind][0]) == ""


@pytest.mark.parametrize(
    ("kind", "alert"), [("kubeadm", "etcdMembersDown"), ("k3s", "KubeProxyDown")]
)
def test_the_charts_own_values_would_fire(
    kind: str, alert: str, archives: Path, tmp_path: Path
) -> None:
    """https://github.com/prometheus-community/helm-charts/issues/4924"""
    assert alert in firing(tmp_path, rendered(archives, tmp_path, 36, {}), CLUSTERS[kind][0])
