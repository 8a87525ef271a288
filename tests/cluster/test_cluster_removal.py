"""deploys/remove.py on real control planes: gpufleet's objects are removed, users' objects stay."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet_sandbox.cluster.snapshot import HEARTBEATS
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.conftest import KUBERNETES
from tests.cluster.fake_operator import FakeOperator
from tests.cluster.pods import SECONDS, pod
from tests.cluster.pool import Pool
from tests.cluster.stacking import STACK, Bench, Outcome

pytestmark = pytest.mark.claim(
    "A removal leaves a cluster as before the installation, but for objects whose "
    "`kubectl delete` commands it prints.",
    level=5,
)

ALL: dict[str, Any] = {
    "device_plugin_runtime_class": "nvidia",
    "monitoring_autoscaling": True,
    "monitoring_node_problems": True,
}
GPU_POD = pod({}, name="train", container={"resources": {"limits": {"nvidia.com/gpu": "1"}}})


def objects(bench: Bench) -> set[str]:
    """Every object of the cluster, by its key in etcd, without Leases and events."""
    return {key for key in bench.cluster.stable_objects() if not key.startswith(HEARTBEATS)}


def has_lease(bench: Bench) -> bool:
    """Whether the Lease of gpufleet's runs exists."""
    leases: Any = client.CoordinationV1Api(bench.cluster.api)
    found = leases.list_namespaced_lease("kube-system").items
    return "gpufleet" in {one.metadata.name for one in found}


def remove(bench: Bench, *options: str, **data: Any) -> Outcome:
    return bench.deploy(*options, deploy="remove", **data)


def clean(bench: Bench, done: Outcome) -> None:
    """Run the commands of the finding about what stays, if the removal has one."""
    for found in done.report["findings"]:
        if found["code"] == "GF973":
            commands = found["remedy"].removeprefix("Delete what nothing needs: ")
            environment = {**os.environ, "KUBECONFIG": str(bench.cluster.kubeconfig)}
            subprocess.run(["bash", "-ec", commands], check=True, env=environment)


def create_left_behind(bench: Bench) -> None:
    """Create the objects that the real chart's operator and hooks create. The fake chart has
    neither."""
    kubelet = {"metadata": {"name": "kube-prometheus-stack-kubelet"},
               "spec": {"clusterIP": "None", "ports": [{"port": 10250}]}}  # fmt: skip
    bench.core.create_namespaced_service("kube-system", kubelet)
    admission = {"metadata": {"name": "kube-prometheus-stack-admission"}}
    bench.core.create_namespaced_secret("monitoring", admission)


def message(done: Outcome, code: str) -> str:
    """The messages of the findings with that code."""
    found = [each["message"] for each in done.report["findings"] if each["code"] == code]
    assert found, done.output
    return "\n".join(found)


def test_a_removal_leaves_the_cluster_as_it_was(bench: Bench) -> None:
    before = objects(bench)
    assert remove(bench, **ALL).report["status"] == "converged"
    installed = bench.deploy(**ALL)
    assert installed.returncode == 0, installed.output
    create_left_behind(bench)
    preview = remove(bench, "--dry", **ALL)
    assert preview.report["status"] == "planned"
    assert set(bench.releases()) == {*STACK, "prometheus-adapter", "node-problem-detector"}
    done = remove(bench, **ALL)
    assert done.returncode == 0, done.output
    chosen = choose_charts(load_charts(), bench.cluster.version)
    assert done.report["releases"] == {
        name: {"before": chosen[name].version, "after": None}
        for name in (*STACK, "prometheus-adapter", "node-problem-detector")
    }
    assert done.codes == {"GF973"}, done.output
    assert not has_lease(bench)
    again = remove(bench, **ALL)
    assert (again.returncode, again.report["status"]) == (0, "converged"), again.output
    assert "no changes" in again.output
    assert not has_lease(bench)
    clean(bench, done)
    assert objects(bench) == before


def helm(bench: Bench, *words: str) -> None:
    """Run helm as a user does."""
    environment = {**os.environ, "KUBECONFIG": str(bench.cluster.kubeconfig)}
    subprocess.run([bench.cluster.helm, *words], check=True, env=environment, capture_output=True)


def users_objects(bench: Bench) -> dict[str, str]:
    """Create a rule, a volume claim and a release of a user. Returns name -> uid."""
    core, custom = bench.core, client.CustomObjectsApi(bench.cluster.api)
    rule: Any = custom.create_namespaced_custom_object(
        "monitoring.coreos.com", "v1", "default", "prometheusrules",
        {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
         "metadata": {"name": "theirs"}, "spec": {"groups": []}},
    )  # fmt: skip
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = core.create_namespaced_persistent_volume_claim(
        "monitoring", {"metadata": {"name": "data"}, "spec": spec}
    )
    version = choose_charts(load_charts(), bench.cluster.version)["dcgm-exporter"].version
    archive = bench.charts / f"dcgm-exporter-{version}.tgz"
    no_monitor = "serviceMonitor.enabled=false"
    helm(bench, "install", "dcgm-exporter", str(archive), "-n", "monitoring", "--set", no_monitor)
    return {"rule": rule["metadata"]["uid"], "claim": claim.metadata.uid}


def remaining(bench: Bench) -> dict[str, str]:
    """The current name -> uid of the user's rule and claim."""
    custom: Any = client.CustomObjectsApi(bench.cluster.api)
    rules = ("monitoring.coreos.com", "v1", "default", "prometheusrules")
    rule = custom.get_namespaced_custom_object(*rules, "theirs")
    claim = bench.core.read_namespaced_persistent_volume_claim("data", "monitoring")
    return {"rule": rule["metadata"]["uid"], "claim": claim.metadata.uid}


@pytest.mark.extended
def test_what_users_created_stays_and_is_named(current: Bench) -> None:
    before = objects(current)
    assert current.deploy(monitoring_exporter=False).returncode == 0
    theirs = users_objects(current)
    done = remove(current)
    assert done.returncode == 0, done.output
    assert current.releases() == {"dcgm-exporter": "deployed"}
    assert remaining(current) == theirs
    assert "monitoring/dcgm-exporter" in message(done, "GF971")
    assert {"GF971", "GF973"} == done.codes
    kept = objects(current)
    again = remove(current)
    assert (again.returncode, again.report["status"]) == (0, "converged"), again.output
    assert objects(current) == kept
    helm(current, "uninstall", "dcgm-exporter", "-n", "monitoring")
    custom: Any = client.CustomObjectsApi(current.cluster.api)
    rules = ("monitoring.coreos.com", "v1", "default", "prometheusrules")
    custom.delete_namespaced_custom_object(*rules, "theirs")
    clean(current, again)
    assert objects(current) == before


@pytest.mark.extended
def test_pods_with_gpus_stop_the_removal_before_anything_is_removed(current: Bench) -> None:
    assert current.deploy(monitoring_enabled=False).returncode == 0
    current.core.create_namespaced_pod("default", GPU_POD)

    def phase() -> str:
        return str(current.core.read_namespaced_pod("train", "default").status.phase)

    assert wait_until(lambda: phase() == "Running", SECONDS)
    stopped = remove(current, monitoring_enabled=False)
    assert (stopped.returncode, stopped.report["status"]) == (1, "failed"), stopped.output
    assert "Pod default/train" in message(stopped, "GF970")
    assert current.releases()["nvidia-device-plugin"] == "deployed"
    done = remove(current, cluster_allow_disruption=True)
    assert done.returncode == 0, done.output
    assert current.releases() == {}
    assert phase() == "Running"


def kill_later(bench: Bench, folder: Path, until: Any) -> None:
    """Kill a removal, and its helm, when `until` returns true."""
    process = bench.start(folder, deploy="remove")
    assert wait_until(until, SECONDS)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    if has_lease(bench):  # as if it had expired
        leases: Any = client.CoordinationV1Api(bench.cluster.api)
        leases.delete_namespaced_lease("gpufleet", "kube-system")


@pytest.mark.extended
def test_the_removal_after_a_killed_one_continues(current: Bench, tmp_path: Path) -> None:
    before = objects(current)
    assert current.deploy().returncode == 0
    kill_later(current, tmp_path, lambda: "nvidia-device-plugin" not in current.releases())
    assert current.releases(), "the removal had ended"
    done = remove(current)
    assert done.returncode == 0, done.output
    assert not has_lease(current)
    clean(current, done)
    assert objects(current) == before


@pytest.mark.extended
def test_killed_at_random_points(current: Bench, pool: Pool, tmp_path: Path) -> None:
    before = objects(current)
    rng = random.Random(20)
    for number in range(10):
        if number % 5 == 0:
            current.cluster = pool.bare(KUBERNETES[0])
            assert current.deploy().returncode == 0
        began, after = time.monotonic(), rng.uniform(1, 12)
        kill_later(current, tmp_path, lambda end=began + after: time.monotonic() > end)
    done = remove(current)
    assert done.returncode == 0, done.output
    assert remove(current).report["changed"] == 0
    clean(current, done)
    assert objects(current) == before


@pytest.mark.extended
def test_labels_of_nodes_are_removed(unlabelled: Bench) -> None:
    data: dict[str, Any] = {"device_plugin_label_nodes": True, "monitoring_enabled": False}

    def metadata() -> list[Any]:
        nodes = unlabelled.core.list_node().items
        return [(one.metadata.labels, one.metadata.annotations) for one in nodes]

    before = metadata()
    assert unlabelled.deploy(**data).returncode == 0
    assert metadata() != before
    assert remove(unlabelled, **data).returncode == 0
    assert metadata() == before


@pytest.mark.extended
def test_a_release_that_gpufleet_took_over_stays(current: Bench) -> None:
    version = choose_charts(load_charts(), current.cluster.version)["nvidia-device-plugin"].version
    archive = current.charts / f"nvidia-device-plugin-{version}.tgz"
    helm(current, "install", "nvidia-device-plugin", str(archive), "-n", "kube-system")
    data: dict[str, Any] = {"monitoring_enabled": False, "cluster_adopt_releases": True}
    assert current.deploy(**data).returncode == 0
    assert current.deploy(**data, device_plugin_mig_strategy="single").returncode == 0
    done = remove(current, **data)
    assert done.returncode == 0, done.output
    assert "it was there before gpufleet" in message(done, "GF971")
    assert current.releases() == {"nvidia-device-plugin": "deployed"}


@pytest.mark.extended
def test_the_gpu_operator_goes_with_its_operands(current: Bench) -> None:
    before = objects(current)
    data: dict[str, Any] = {"cluster_stack": "gpu-operator", "monitoring_prometheus": "none"}
    with FakeOperator(current.cluster):
        installed = current.deploy(**data)
        assert installed.returncode == 0, installed.output
    done = remove(current, **data)
    assert (done.returncode, done.codes) == (0, {"GF973"}), done.output
    clean(current, done)
    assert objects(current) == before
