"""Runs for a cluster in memory that meet what others did there, or that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from cluster_bench import ClusterBench, install, take_away
from memory_cluster import DAEMONS

from gpufleet.helm.operations import release_wait
from gpufleet.helm.release import CrdStep
from gpufleet.kube.facts import ObjectRef
from tests.roles.steps_of_clusters_setup import RICH, WRITES

LIST = "namespaces/monitoring/configmaps/gpufleet-exporter-counters-sha256-…"
MORE = {**RICH, "monitoring_exporter_memory": "3Gi"}


def writes(steps: list[str]) -> list[str]:
    return [line.strip() for line in steps if line.startswith(WRITES)]


@pytest.mark.parametrize(
    ("deploy", "refused", "message"),
    [
        (install, "secrets/gpufleet-grafana", "create Secret monitoring/gpufleet-grafana: Invalid"),
        (install, "secrets/gpufleet-alertmanager",
         "write /api/v1/namespaces/monitoring/secrets/gpufleet-alertmanager: Invalid"),
        (install, "nodes/gpu-1", "label nodes: merge /api/v1/nodes/gpu-1: 422 denied: it is so"),
        (install, "runtimeclasses", "create RuntimeClass nvidia: create "
         "/apis/node.k8s.io/v1/runtimeclasses/nvidia: 422 denied: it is so"),
        (take_away, "secrets/gpufleet-grafana",
         "delete Secret monitoring/gpufleet-grafana: Invalid"),
        (take_away, "nodes/gpu-1",
         "remove the label of node gpu-1: merge /api/v1/nodes/gpu-1: 422 denied: it is so"),
        (take_away, "prometheusrules/gpufleet", "delete PrometheusRule monitoring/gpufleet-gpu: "
         "delete /apis/monitoring.coreos.com/v1/namespaces/monitoring/prometheusrules/"
         "gpufleet-gpu: "
         "422 denied: it is so"),
    ],
)  # fmt: skip
def test_a_write_that_is_refused_ends_the_run(
    bench: ClusterBench, deploy: Callable[[], None], refused: str, message: str
) -> None:
    """The server's message is omitted if it may quote a Secret."""
    if deploy is take_away:
        bench.run(install, **RICH)
    bench.api.refused = refused
    steps, part = bench.run(deploy, **RICH)
    assert not steps[-1].startswith("  -")
    assert part.status == "failed"
    assert part.findings[-1].message == f"Cannot {message}."


@pytest.mark.parametrize(
    ("deploy", "release", "said"),
    [
        (install, "nvidia-device-plugin", "Installation of release {} failed: it broke"),
        (take_away, "nvidia-device-plugin", "Removal of release {} failed: it broke"),
    ],
)
def test_a_call_of_helm_that_fails_ends_the_run(
    bench: ClusterBench, deploy: Callable[[], None], release: str, said: str
) -> None:
    if deploy is take_away:
        bench.run(install, **RICH)
    bench.fails = release
    steps, part = bench.run(deploy, **RICH)
    assert f"kube-system/{release}" in steps[-1]
    problems = [found.message for found in part.findings if found.blocks]
    assert problems == [said.format(f"kube-system/{release}")]
    assert release not in part.seen


@pytest.mark.parametrize("gone", [False, True])
def test_an_upgrade_that_fails_is_rolled_back(bench: ClusterBench, gone: bool) -> None:
    """A repair is not rolled back, because the last revision is the broken one."""
    bench.run(install, **RICH)
    if gone:
        del bench.api.objects[f"{DAEMONS}/dcgm-exporter"]
    bench.fails = "upgrade monitoring/dcgm-exporter"
    steps, part = bench.run(install, **(RICH if gone else MORE))
    assert writes(steps) == [
        "helm upgrade monitoring/dcgm-exporter dcgm-exporter",
        *([] if gone else ["helm rollback monitoring/dcgm-exporter 1"]),
    ]
    codes = [found.code for found in part.findings]
    assert codes == (["GF840"] if gone else ["GF840", "GF848"])


def test_a_release_waits_for_its_crds(bench: ClusterBench) -> None:
    manifest = {"apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "things.a.example"}}
    bench.crds = [CrdStep("things.a.example", "create", "apply", "", "1.0.0", manifest)]
    bench.api.refused = "things.a.example"
    steps, part = bench.run(install)
    assert steps[-1] == "Monitoring | Install Prometheus and Grafana"
    assert [found.code for found in part.findings] == ["GF880"]
    assert part.status == "failed"


def test_a_recreated_workload_goes_before_an_upgrade_and_before_its_rollback(
    bench: ClusterBench,
) -> None:
    bench.run(install, **RICH)
    bench.recreated = [ObjectRef("DaemonSet", "monitoring", "dcgm-exporter")]
    bench.fails = "upgrade monitoring/dcgm-exporter"
    bench.said.clear()
    steps, _ = bench.run(install, **MORE)
    deleted = f"delete {DAEMONS.removeprefix('/apis/')}/dcgm-exporter"
    assert writes(steps) == [
        deleted,
        "helm upgrade monitoring/dcgm-exporter dcgm-exporter",
        deleted,
        "helm rollback monitoring/dcgm-exporter 1",
    ]
    said = [line for line in bench.said if not line.startswith("[@fake/cluster]   ")]
    assert [line.removeprefix("[@fake/cluster] ") for line in said[1:]] == [
        "upgrade: values differ",
        "deleting DaemonSet monitoring/dcgm-exporter: its selector changes",
        "rolling back to revision 1",
        "deleting DaemonSet monitoring/dcgm-exporter: its selector changes",
    ]


@pytest.mark.parametrize("upgrade", [False, True])
def test_a_release_that_is_not_ready_fails_and_is_rolled_back(
    bench: ClusterBench, upgrade: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    clock = SimpleNamespace(
        monotonic=lambda: now[0], sleep=lambda seconds: now.append(now.pop() + seconds)
    )
    monkeypatch.setattr(release_wait, "time", clock)
    if upgrade:
        bench.run(install, **RICH)
    bench.api.available = 1
    steps, part = bench.run(install, **(MORE if upgrade else RICH), cluster_timeout=60)
    messages = [
        "Release monitoring/dcgm-exporter is not ready after 60 s: DaemonSet dcgm-exporter: 1 of 2 "
        "pods are ready.",
        "Release monitoring/dcgm-exporter was rolled back to revision 1 (dcgm-exporter 4.8.2), "
        "because the new one failed.",
    ]
    assert [found.message for found in part.findings] == messages[: 2 if upgrade else 1]
    assert ("rolled back" in part.findings[0].remedy) is upgrade
    assert writes(steps)[-1].startswith("helm rollback") is upgrade
    said = [line.removeprefix("[@fake/cluster] ") for line in bench.said[-12:]]
    waiting = "{} s: waiting for DaemonSet dcgm-exporter: 1 of 2 pods are ready"
    assert waiting.format(5) in said
    assert waiting.format(55) in said
    assert said[-1] == ("rolling back to revision 1" if upgrade else waiting.format(55))
