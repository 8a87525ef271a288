"""deploys/gpu_cluster.py on real control planes: with GPUFLEET_CHARTS on the real charts."""

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

from gpufleet.catalog.charts import choose_charts, load_charts
from gpufleet.catalog.counters import load_counters
from gpufleet.catalog.versions import release
from gpufleet.sandbox.cluster import Cluster
from gpufleet.sandbox.waiting import wait_until
from tests.cluster.conftest import KUBERNETES
from tests.cluster.stacking import REAL_CHARTS, Bench, choices_of, start

STACK = ["kube-prometheus-stack", "node-feature-discovery", "nvidia-device-plugin", "dcgm-exporter"]
CRD = "prometheuses.monitoring.coreos.com"


def test_a_bare_cluster_becomes_a_gpu_cluster_and_stays_as_it_is(bench: Bench) -> None:
    done = bench.deploy()
    assert done.returncode == 0, done.output
    chosen = choose_charts(load_charts(), bench.cluster.version)
    assert done.report["releases"] == {
        name: {"before": None, "after": chosen[name].version} for name in STACK
    }
    assert bench.releases() == dict.fromkeys(STACK, "deployed")
    told = {found["code"] for found in done.report["findings"] if found["severity"] != "info"}
    has_list = load_counters().serves(chosen["dcgm-exporter"].version)
    assert told == (set() if has_list else {"GF897"})  # some alerts lack their counters
    again = bench.deploy()
    assert again.returncode == 0, again.output
    assert (again.report["changed"], again.report["failed"]) == (0, False)
    assert again.seconds < 5
    checks = bench.verify()
    failed = {
        name: part for name, part in checks.items() if part["outcome"] not in ("passed", "skipped")
    }
    assert failed == {}
    assert checks["a_pod_with_a_gpu_finishes"]["outcome"] == "passed"
    assert "nothing shows what ran" in checks["vectors_are_added_on_the_gpu"]["message"]


def test_grafana_has_a_password_that_nobody_prints_or_changes(current: Bench) -> None:
    done = current.deploy("-vv", monitoring_grafana_node_port=32322)
    assert done.returncode == 0, done.output
    secret = current.core.read_namespaced_secret("gpufleet-grafana", "monitoring")
    password = client.ApiClient().sanitize_for_serialization(secret)["data"]["admin-password"]
    assert len(password) > 30
    assert password not in done.output
    assert current.deploy(monitoring_grafana_node_port=32322).report["changed"] == 0
    after = current.core.read_namespaced_secret("gpufleet-grafana", "monitoring")
    assert after.data == secret.data
    checks = current.verify(monitoring_grafana_node_port=32322)
    assert checks["grafana_port"]["outcome"] == "passed"
    assert current.verify(monitoring_grafana_node_port=32323)["grafana_port"]["code"] == "GF799"


def test_a_dry_run_shows_what_would_be_done_and_does_nothing(current: Bench) -> None:
    done = current.deploy("--dry")
    assert done.returncode == 0, done.output
    assert "kube-prometheus-stack: install" in done.output
    assert current.releases() == {}
    namespaces = {found.metadata.name for found in current.core.list_namespace().items}
    assert "monitoring" not in namespaces


def test_a_pin_that_cannot_work_stops_everything_before_it_begins(bench: Bench) -> None:
    pins = {"kube-prometheus-stack": "46.2.0", "dcgm-exporter": "3.1.5"}
    old = bench.cluster.version.startswith("1.18")
    if not old:
        pins = {"node-feature-discovery": "0.19.0"}
    done = bench.deploy(cluster_chart_versions=pins)
    if not old:
        assert done.returncode == 0, done.output
        return
    assert done.returncode == 1
    blockers = [f["message"] for f in done.report["findings"] if f["severity"] == "blocker"]
    assert len(blockers) == 2
    assert any("seccompProfile" in message for message in blockers)
    assert bench.releases() == {}


# the version in the annotations of the CRDs that come with the chart
OPERATOR = {"45.10.1": None, "72.9.1": "0.82.2", "88.5.3": "0.93.1"}


def test_crds_come_before_the_chart_that_needs_them(current: Bench) -> None:
    choices = choices_of("kube-prometheus-stack", current.cluster.version)
    if len(choices) < 2:
        pytest.skip(f"there is no older choice than {choices[0]} to come from")
    old, new = choices[-2:]
    pins = {"kube-prometheus-stack": old}
    assert current.deploy(cluster_chart_versions=pins).returncode == 0
    api = client.ApiextensionsV1Api(current.cluster.api)

    def version() -> str | None:
        found: Any = api.read_custom_resource_definition(CRD)
        return (found.metadata.annotations or {}).get("operator.prometheus.io/version")

    assert version() == OPERATOR[old]
    done = current.deploy()
    assert done.returncode == 0, done.output
    moved = done.report["releases"]["kube-prometheus-stack"]
    assert moved == {"before": old, "after": new}
    assert version() == OPERATOR[new]
    objects = client.CustomObjectsApi(current.cluster.api)
    found: Any = objects.list_cluster_custom_object("monitoring.coreos.com", "v1", "prometheuses")
    if new == "88.5.3":  # the CRDs of 72.9.1 do not know it
        assert "hostNetwork" in found["items"][0]["spec"]
    assert current.deploy().report["changed"] == 0


UPGRADES = [  # careful choices, oldest first; not beyond the cluster's own
    {"kube-prometheus-stack": "45.10.1", "dcgm-exporter": "2.6.10",
     "nvidia-device-plugin": "0.14.5", "node-feature-discovery": "0.14.6"},
    {"kube-prometheus-stack": "72.9.1", "dcgm-exporter": "3.1.5",
     "nvidia-device-plugin": "0.14.5", "node-feature-discovery": "0.14.6"},
    {},  # the cluster's own
]  # fmt: skip


def test_every_choice_can_be_upgraded_to_the_next(current: Bench) -> None:
    before: dict[str, str] = {}
    chosen = choose_charts(load_charts(), current.cluster.version)
    for step in UPGRADES:
        pins = {name: min(step[name], chosen[name].version, key=release) for name in step}
        done = current.deploy(cluster_chart_versions=pins)
        assert done.returncode == 0, done.output
        moved = done.report["releases"]
        plugin = moved["nvidia-device-plugin"]
        if plugin["before"] and plugin["before"] != plugin["after"]:
            assert (
                "GF881" in done.codes
            )  # gpu-feature-discovery of 0.15 and newer selects other pods
        assert {name: part["before"] for name, part in moved.items() if part["before"]} == before
        before = {name: part["after"] for name, part in moved.items()}
        assert current.releases() == dict.fromkeys(STACK, "deployed")
        assert current.deploy(cluster_chart_versions=pins).report["changed"] == 0
    assert before == {name: chosen[name].version for name in STACK}


def test_a_value_that_the_chart_does_not_know_is_refused(current: Bench) -> None:
    if REAL_CHARTS:
        done = current.deploy(monitoring_exporter_values={"serviceMonitr": {"enabled": False}})
        assert "GF836" in done.codes
        return
    done = current.deploy(monitoring_exporter_values={"serviceMonitr": {"enabled": False}})
    assert done.returncode == 1
    assert "serviceMonitr" in str(done.report)
    assert "dcgm-exporter" not in current.releases()


def test_where_somebody_collects_no_second_exporter_comes(current: Bench) -> None:
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


def test_gpu_nodes_are_labelled_where_nfd_is_not_wanted(worker_id: str, charts: Path) -> None:
    bench = start(KUBERNETES[0], worker_id, charts, labelled=False)
    try:
        done = bench.deploy(device_plugin_label_nodes=True)
        assert done.returncode == 0, done.output
        assert "node-feature-discovery" not in bench.releases()
        for node in bench.core.list_node().items:
            assert node.metadata.labels["nvidia.com/gpu.present"] == "true"
        assert bench.verify()["plugin_on_every_gpu_node"]["outcome"] == "passed"
        assert bench.deploy(device_plugin_label_nodes=True).report["changed"] == 0
    finally:
        bench.cluster.down()


def test_nodes_without_labels_are_told_with_the_label_that_is_missing(
    worker_id: str, charts: Path
) -> None:
    bench = start(KUBERNETES[0], worker_id, charts, labelled=False)
    try:
        done = bench.deploy(device_plugin_nfd=False, cluster_timeout=10)
        assert done.returncode == 1
        assert "nvidia.com/gpu.present" in str(done.report["findings"])
    finally:
        bench.cluster.down()


def without_gpus(bench: Bench, *names: str) -> None:
    """As where the plugin runs and NVML shows it nothing."""
    gone = {"status": {kind: {"nvidia.com/gpu": "0"} for kind in ("capacity", "allocatable")}}
    for name in names:
        bench.core.patch_node_status(name, gone)


def test_a_node_that_offers_no_gpus_is_told_and_stops_nobody(current: Bench) -> None:
    without_gpus(current, "gpu-2")
    done = current.deploy(cluster_timeout=20, monitoring_enabled=False)
    assert done.returncode == 0, done.output
    told = [found for found in done.report["findings"] if found["code"] == "GF888"]
    assert len(told) == 1
    assert told[0]["message"].startswith("gpu-2 offers no GPUs")


def test_a_plugin_that_shows_no_gpu_anywhere_is_no_success(current: Bench) -> None:
    without_gpus(current, "gpu-1", "gpu-2", "gpu-3")
    done = current.deploy(cluster_timeout=10, monitoring_enabled=False)
    assert done.returncode == 1
    assert "node gpu-1 offers no GPUs to pods" in str(done.report["findings"])


def test_an_api_that_does_not_answer_is_told(current: Bench, tmp_path: Path) -> None:
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


def test_a_killed_run_is_made_up_for(current: Bench, tmp_path: Path) -> None:
    """SIGKILL at ten points of the run, each on what the one before left behind."""
    chance = random.Random(18)
    whole = 8.0  # seconds that a first run takes, roughly
    for number in range(10):
        if number == 5:  # and from a bare cluster again
            name, version = current.cluster.name, current.cluster.version
            current.cluster.down()
            current.cluster = Cluster.up(name, version, progress=print)
        process = current.start(tmp_path)
        time.sleep(chance.uniform(0.5, whole))  # the point of the kill is what is tested
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    done = current.deploy()
    assert done.returncode == 0, done.output
    assert current.releases() == dict.fromkeys(STACK, "deployed")
    assert current.deploy().report["changed"] == 0


@pytest.mark.parametrize(
    ("image", "check", "code"),
    [
        ("nvidia-device-plugin", "plugin_on_every_gpu_node", "GF793"),
        ("dcgm-exporter", "exporter_on_every_gpu_node", "GF794"),
    ],
)
def test_a_check_fails_when_what_it_is_for_is_broken(
    current: Bench, image: str, check: str, code: str
) -> None:
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

    assert wait_until(gone, 30)
    checks = current.verify()
    failed = {name: part["code"] for name, part in checks.items() if part["outcome"] == "failed"}
    assert failed == {check: code}


def test_gpus_that_are_gone_are_told(current: Bench) -> None:
    assert current.deploy().returncode == 0
    body = {"status": {"allocatable": {"nvidia.com/gpu": "7"}}}
    current.core.patch_node_status("gpu-2", body)
    checks = current.verify()
    assert checks["gpus_are_offered"]["code"] == "GF792"
    assert "gpu-2 offers 7 of 8" in checks["gpus_are_offered"]["message"]
