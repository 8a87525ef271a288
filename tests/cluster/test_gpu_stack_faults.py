"""Obstacles to a GPU stack on real control planes: reported, and fixed by a later run."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from gpufleet_sandbox.waiting import wait_until
from tests.cluster.conftest import KUBERNETES
from tests.cluster.pool import Pool
from tests.cluster.stacking import REAL_CHARTS, STACK, Bench


def test_an_unknown_value_of_a_chart_is_refused(current: Bench) -> None:
    if REAL_CHARTS:
        done = current.deploy(monitoring_exporter_values={"serviceMonitr": {"enabled": False}})
        assert "GF836" in done.codes
        return
    done = current.deploy(monitoring_exporter_values={"serviceMonitr": {"enabled": False}})
    assert done.returncode == 1
    assert "serviceMonitr" in str(done.report)
    assert "dcgm-exporter" not in current.releases()


@pytest.mark.claim(
    "A node has one exporter, whatever the other one is called.",
    level=5,
)
def test_with_another_exporter_none_is_installed(current: Bench) -> None:
    labels = {"app": "starship"}
    container = {
        "name": "x",
        "image": "a/starship:1",
        "ports": [{"containerPort": 9400, "hostPort": 9400}],
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    body = {
        "metadata": {"name": "starship"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    apps: Any = client.AppsV1Api(current.cluster.api)
    apps.create_namespaced_daemon_set("default", body)
    done = current.deploy()
    assert done.returncode == 0, done.output
    assert "GF872" in done.codes
    assert "dcgm-exporter" not in current.releases()


@pytest.mark.extended
def test_gpu_nodes_are_labelled_without_nfd(unlabelled: Bench) -> None:
    done = unlabelled.deploy(device_plugin_label_nodes=True)
    assert done.returncode == 0, done.output
    assert "node-feature-discovery" not in unlabelled.releases()
    for node in unlabelled.core.list_node().items:
        assert node.metadata.labels["nvidia.com/gpu.present"] == "true"
    assert unlabelled.verify()["plugin_on_every_gpu_node"]["outcome"] == "passed"
    assert unlabelled.deploy(device_plugin_label_nodes=True).report["changed"] == 0


@pytest.mark.extended
def test_unlabelled_nodes_are_reported_with_the_missing_label(unlabelled: Bench) -> None:
    done = unlabelled.deploy(device_plugin_nfd=False, cluster_timeout=10)
    assert done.returncode == 1
    assert "nvidia.com/gpu.present" in str(done.report["findings"])


def without_gpus(bench: Bench, *names: str) -> None:
    """Simulate a plugin that runs but finds no GPU."""
    gone = {"status": {kind: {"nvidia.com/gpu": "0"} for kind in ("capacity", "allocatable")}}
    for name in names:
        bench.core.patch_node_status(name, gone)


@pytest.mark.extended
def test_a_node_without_gpus_is_reported_and_does_not_stop_others(current: Bench) -> None:
    without_gpus(current, "gpu-2")
    done = current.deploy(cluster_timeout=20, monitoring_enabled=False)
    assert done.returncode == 0, done.output
    reported = [found for found in done.report["findings"] if found["code"] == "GF888"]
    assert len(reported) == 1
    assert reported[0]["message"].startswith("gpu-2 advertises no GPUs")


@pytest.mark.extended
def test_no_gpu_on_any_node_is_a_failure(current: Bench) -> None:
    without_gpus(current, "gpu-1", "gpu-2", "gpu-3")
    done = current.deploy(cluster_timeout=10, monitoring_enabled=False)
    assert done.returncode == 1
    assert "node gpu-1 advertises no GPUs" in str(done.report["findings"])


def test_an_unreachable_api_is_reported(current: Bench, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = current.cluster.kubeconfig.read_text()
    url = next(line for line in text.splitlines() if "server:" in line)
    dead = tmp_path / "kubeconfig"
    dead.write_text(text.replace(url, f"    server: https://127.0.0.1:{port}"))
    done = current.deploy(cluster_kubeconfig=str(dead))
    assert done.returncode == 1
    assert "GF863" in done.codes


@pytest.mark.extended
def test_the_run_after_a_killed_one_converges(current: Bench, pool: Pool, tmp_path: Path) -> None:
    """SIGKILL at ten points of the run, each on the state that the previous one left."""
    rng = random.Random(18)
    whole = 8.0  # seconds of a first run, approximately
    for number in range(10):
        if number == 5:  # again from a bare cluster
            current.cluster = pool.bare(KUBERNETES[0])
        process = current.start(tmp_path)
        time.sleep(rng.uniform(0.5, whole))  # the test varies the time of the kill
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    done = current.deploy()
    assert done.returncode == 0, done.output
    assert current.releases() == dict.fromkeys(STACK, "deployed")
    assert current.deploy().report["changed"] == 0


@pytest.mark.claim(
    "Each check of a cluster finds its own fault, and no other check does.",
    level=5,
)
@pytest.mark.extended
@pytest.mark.parametrize(
    ("image", "check", "code"),
    [
        ("nvidia-device-plugin", "plugin_on_every_gpu_node", "GF758"),
        ("dcgm-exporter", "exporter_on_every_gpu_node", "GF758"),
    ],
)
def test_a_check_fails_for_its_own_fault(current: Bench, image: str, check: str, code: str) -> None:
    assert current.deploy().returncode == 0
    apps: Any = client.AppsV1Api(current.cluster.api)
    (found,) = (
        one for one in apps.list_daemon_set_for_all_namespaces().items if one.metadata.name == image
    )
    nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"no": "where"}}}}}
    apps.patch_namespaced_daemon_set(image, found.metadata.namespace, nowhere)

    def gone() -> bool:
        one: Any = apps.read_namespaced_daemon_set(image, found.metadata.namespace)
        return bool(one.status.desired_number_scheduled == 0 == one.status.current_number_scheduled)

    assert wait_until(gone, 120)
    checks = current.verify()
    failed = {name: part["code"] for name, part in checks.items() if part["outcome"] == "failed"}
    assert failed == {
        check: code,
        "prometheus_answers": "GF709",
    }  # simulated nodes run no Prometheus


@pytest.mark.extended
def test_missing_gpus_are_reported(current: Bench) -> None:
    assert current.deploy().returncode == 0
    body = {"status": {"allocatable": {"nvidia.com/gpu": "7"}}}
    current.core.patch_node_status("gpu-2", body)
    checks = current.verify()
    assert checks["gpus_are_offered"]["code"] == "GF792"
    assert "gpu-2 advertises 7 of 8" in checks["gpus_are_offered"]["message"]
