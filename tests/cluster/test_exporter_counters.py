"""The arguments of dcgm-exporter from charts without a value for counters: on 1.18 the chart that
gpufleet selects, on newer clusters the same chart by its version."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from gpufleet.exporter.counters import counters_csv, load_counters
from gpufleet.gpu_stack.counters import config_map_name
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS
from tests.cluster.stacking import Bench

pytestmark = pytest.mark.claim(
    "An exporter whose chart takes no list of counters is started with gpufleet's list.",
    level=5,
)

OLD = "2.6.10"
VOLUME, SPACE, RELEASE = "gpufleet-exporter-counters", "monitoring", "dcgm-exporter"
FILE, PATH = "counters.csv", "/etc/gpufleet/counters.csv"
ALONE = {"monitoring_prometheus": "none", "device_plugin_nfd": False}
ONE_LIST = "DCGM_FI_DEV_GPU_TEMP, gauge, temperature (C)\n"


def old_chart(bench: Bench) -> dict[str, Any]:
    """The settings by which the cluster gets the old chart: on 1.18 none."""
    if bench.cluster.version.startswith("1.18"):
        return {}
    return {"cluster_chart_versions": {"dcgm-exporter": OLD}}


def exporter(bench: Bench) -> Any:
    """The pods of the exporter's DaemonSet, as its template describes them."""
    apps: Any = client.AppsV1Api(bench.cluster.api)
    return apps.read_namespaced_daemon_set(RELEASE, SPACE).spec.template


def lists(bench: Bench) -> dict[str, Any]:
    """Name -> data of gpufleet's ConfigMaps with lists."""
    ours = "app.kubernetes.io/component=exporter-counters"
    found = bench.core.list_namespaced_config_map(SPACE, label_selector=ours).items
    return {one.metadata.name: one.data for one in found}


def helm(bench: Bench, *words: str) -> None:
    """Run helm on the exporter's release, as a user does."""
    command = [bench.cluster.helm, *words, "--namespace", SPACE]
    environment = {**os.environ, "KUBECONFIG": str(bench.cluster.kubeconfig)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr


def pods(bench: Bench) -> dict[str, Any]:
    """Name -> running pod of the exporter."""
    found = bench.core.list_namespaced_pod(SPACE).items
    return {
        one.metadata.name: one
        for one in found
        if one.metadata.name.startswith("dcgm-exporter")
        and one.status.phase == "Running"
        and not one.metadata.deletion_timestamp
    }


def monitors(bench: Bench) -> list[str]:
    """Names of the exporter's ServiceMonitors."""
    objects: Any = client.CustomObjectsApi(bench.cluster.api)
    found = objects.list_namespaced_custom_object(
        "monitoring.coreos.com", "v1", SPACE, "servicemonitors"
    )
    names = [one["metadata"]["name"] for one in found["items"]]
    return [name for name in names if "dcgm-exporter" in name]


def started_with(bench: Bench, spec: Any) -> str:
    """The list that an exporter with this pod spec reads: of the ConfigMap that is mounted where
    its arguments say."""
    [container] = spec.containers
    assert container.args == ["-f", PATH]
    [mount] = [each for each in container.volume_mounts if each.name == VOLUME]
    assert (mount.mount_path, mount.sub_path) == ("/etc/gpufleet", None)
    [volume] = [each for each in spec.volumes if each.name == mount.name]
    found = bench.core.read_namespaced_config_map(volume.config_map.name, SPACE)
    return str(found.data[FILE])


def test_an_old_exporter_is_started_with_our_list(bench: Bench) -> None:
    data = {**old_chart(bench), **ALONE}
    done = bench.deploy(**data)
    assert done.returncode == 0, done.output
    assert done.report["releases"]["dcgm-exporter"]["after"] == OLD
    ours = counters_csv(load_counters(), OLD)
    assert started_with(bench, exporter(bench).spec) == ours
    running = pods(bench)
    assert running
    for one in running.values():
        assert started_with(bench, one.spec) == ours
    assert list(lists(bench).values()) == [{FILE: ours}]
    again = bench.deploy(**data)
    assert again.report["changed"] == 0, again.output
    assert set(pods(bench)) == set(running), "no pod was restarted"


@pytest.mark.extended
def test_the_alerts_without_metrics_are_named(bench: Bench) -> None:
    done = bench.deploy(**old_chart(bench))
    assert done.returncode == 0, done.output
    [silent] = [f["message"] for f in done.report["findings"] if f["code"] == "GF897"]
    assert silent.count("Gpu") == 2
    assert "GpuRowRemapPending (DCGM_FI_DEV_ROW_REMAP_PENDING)" in silent
    assert "GpuMemoryHot (DCGM_FI_DEV_MEM_MAX_OP_TEMP)" in silent
    assert monitors(bench) == ["gpufleet-dcgm-exporter"], "the chart's could not name the node"
    assert bench.verify("monitor_is_selected")["a_monitor_is_selected"]["outcome"] == "passed"
    assert bench.deploy(**old_chart(bench)).report["changed"] == 0


def all_new(bench: Bench, before: set[str]) -> bool:
    return bool(pods(bench)) and not set(pods(bench)) & before


@pytest.mark.extended
def test_a_list_cannot_be_changed(current: Bench) -> None:
    data = {**ALONE, "monitoring_exporter_values": {"arguments": ["-d", "g"]}}
    assert current.deploy(**data).returncode == 0
    [name] = lists(current)
    with pytest.raises(ApiException, match="immutable"):
        current.core.patch_namespaced_config_map(name, SPACE, {"data": {FILE: ONE_LIST}})


@pytest.mark.extended
def test_a_rollback_starts_the_exporter_with_the_list_of_its_revision(bench: Bench) -> None:
    data = {**old_chart(bench), **ALONE}
    assert bench.deploy(**data).returncode == 0
    [ours] = lists(bench).values()
    first = set(pods(bench))
    done = bench.deploy(**data, monitoring_counters=ONE_LIST)
    assert done.returncode == 0, done.output
    assert started_with(bench, exporter(bench).spec) == ONE_LIST
    assert not set(pods(bench)) & first
    assert bench.deploy(**data, monitoring_counters=ONE_LIST).report["changed"] == 0
    second = set(pods(bench))
    helm(bench, "rollback", RELEASE, "1")
    assert started_with(bench, exporter(bench).spec) == ours[FILE]
    assert wait_until(lambda: all_new(bench, second), SECONDS)


@pytest.mark.extended
def test_values_that_repeat_the_charts_own_start_it_with_our_list(bench: Bench) -> None:
    path = "/etc/dcgm-exporter/dcp-metrics-included.csv"
    name, source = "exporter-metrics-volume", {"name": "exporter-metrics-config-map"}
    volume = {"name": name, "configMap": source}
    mount = {"name": name, "mountPath": path}
    theirs = {
        "extraConfigMapVolumes": [volume],
        "extraVolumeMounts": [mount],
        "arguments": ["-d", "g", "-f", path],
    }
    done = bench.deploy(**old_chart(bench), **ALONE, monitoring_exporter_values=theirs)
    assert done.returncode == 0, done.output
    spec = exporter(bench).spec
    assert spec.containers[0].args == ["-d", "g", "-f", PATH]
    [volume] = [each for each in spec.volumes if each.config_map]
    found = bench.core.read_namespaced_config_map(volume.config_map.name, SPACE)
    assert found.data[FILE] == counters_csv(load_counters(), OLD)


@pytest.mark.extended
def test_a_config_map_of_others_is_not_overwritten(bench: Bench) -> None:
    name = config_map_name(counters_csv(load_counters(), OLD) or "")
    bench.core.create_namespace({"metadata": {"name": SPACE}})
    theirs = {"metadata": {"name": name}, "data": {FILE: ONE_LIST}}
    bench.core.create_namespaced_config_map(SPACE, theirs)
    done = bench.deploy(**old_chart(bench), **ALONE)
    assert done.returncode == 1
    [said] = [found for found in done.report["findings"] if found["code"] == "GF900"]
    assert f"ConfigMap {SPACE}/{name} exists" in said["message"]
    assert bench.core.read_namespaced_config_map(name, SPACE).data == {FILE: ONE_LIST}
    assert RELEASE not in bench.releases()


@pytest.mark.extended
def test_a_release_that_fails_leaves_its_exporters_with_a_list_and_a_scrape(bench: Bench) -> None:
    """Only the chart of 1.18 needs this: newer charts have the ServiceMonitor in the release."""
    waiting = {"podAnnotations": {"sandbox.gpufleet/waiting": "ErrImagePull"}}
    data = {**old_chart(bench), "monitoring_exporter_values": waiting, "cluster_timeout": 10}
    done = bench.deploy(**data)
    assert done.returncode == 1, done.output
    assert monitors(bench) == ["gpufleet-dcgm-exporter"]
    assert started_with(bench, exporter(bench).spec)


@pytest.mark.extended
def test_what_is_beside_the_release_goes_with_it(current: Bench) -> None:
    if not old_chart(current):
        pytest.skip("gpufleet chooses no chart with the value customMetrics for this Kubernetes")
    assert current.deploy(**old_chart(current)).returncode == 0
    [name] = lists(current)
    done = current.deploy()
    assert done.returncode == 0, done.output
    assert monitors(current) == ["dcgm-exporter"], "of the chart that can name the node"
    maps = [each.config_map for each in exporter(current).spec.volumes if each.config_map]
    assert [each.name for each in maps] == ["exporter-metrics-config-map"]
    assert list(lists(current)) == [name], "helm rollback needs it"
    assert current.deploy().report["changed"] == 0
    helm(current, "rollback", RELEASE, "1")
    assert current.deploy(monitoring_exporter=False).returncode == 0
    assert list(lists(current)) == [name]
    helm(current, "uninstall", RELEASE)
    done = current.deploy(monitoring_exporter=False)
    assert done.returncode == 0, done.output
    assert monitors(current) == []
    assert current.deploy(monitoring_exporter=False).report["changed"] == 0
