"""What dcgm-exporter is started with, by charts that take no list of counters: on 1.18 the one
that gpufleet chooses, on newer clusters the same by its version."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from gpufleet.exporter.counters import load_counters
from gpufleet.exporter.counters_file import counters_csv
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS
from tests.cluster.stacking import Bench

OLD = "2.6.10"
NAME, SPACE = "gpufleet-exporter-counters", "monitoring"
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
    return apps.read_namespaced_daemon_set("dcgm-exporter", SPACE).spec.template


def config_map(bench: Bench) -> Any:
    return bench.core.read_namespaced_config_map(NAME, SPACE)


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
    [mount] = [each for each in container.volume_mounts if each.name == NAME]
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
    before = config_map(bench).metadata.resource_version
    again = bench.deploy(**data)
    assert again.report["changed"] == 0, again.output
    assert config_map(bench).metadata.resource_version == before
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


@pytest.mark.extended
def test_a_list_that_changes_restarts_the_exporter(bench: Bench) -> None:
    data = {**old_chart(bench), **ALONE}
    assert bench.deploy(**data).returncode == 0
    ours, first = dict(config_map(bench).data), set(pods(bench))

    def all_new(before: set[str]) -> bool:
        return bool(pods(bench)) and not set(pods(bench)) & before

    bench.core.patch_namespaced_config_map(NAME, SPACE, {"data": {FILE: ONE_LIST}})
    done = bench.deploy(**data)
    assert done.returncode == 0, done.output
    assert config_map(bench).data == ours
    assert wait_until(lambda: all_new(first), SECONDS), "they may have read the changed list"
    assert bench.deploy(**data).report["changed"] == 0

    second = set(pods(bench))
    data["monitoring_counters"] = ONE_LIST
    done = bench.deploy(**data)
    assert done.returncode == 0, done.output
    assert config_map(bench).data == {FILE: ONE_LIST}
    assert not set(pods(bench)) & second
    assert bench.deploy(**data).report["changed"] == 0


@pytest.mark.extended
def test_a_config_map_of_others_is_not_overwritten(bench: Bench) -> None:
    bench.core.create_namespace({"metadata": {"name": SPACE}})
    theirs = {"metadata": {"name": NAME}, "data": {FILE: ONE_LIST}}
    bench.core.create_namespaced_config_map(SPACE, theirs)
    done = bench.deploy(**old_chart(bench), **ALONE)
    assert done.returncode == 1
    assert "GF900" in done.codes
    assert config_map(bench).data == {FILE: ONE_LIST}
    assert "dcgm-exporter" not in bench.releases()


@pytest.mark.extended
def test_the_config_map_goes_with_the_chart_that_needs_it(current: Bench) -> None:
    if not old_chart(current):
        pytest.skip("gpufleet chooses no chart with the value customMetrics for this Kubernetes")
    assert current.deploy(**old_chart(current), **ALONE).returncode == 0
    assert config_map(current).data
    done = current.deploy(**ALONE)
    assert done.returncode == 0, done.output
    with pytest.raises(ApiException, match="Not Found"):
        config_map(current)
    maps = [each.config_map for each in exporter(current).spec.volumes if each.config_map]
    assert [each.name for each in maps] == ["exporter-metrics-config-map"]
    assert current.deploy(**ALONE).report["changed"] == 0
