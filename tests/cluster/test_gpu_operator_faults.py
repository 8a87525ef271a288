"""A GPU Operator that is not ready is reported with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from tests.cluster.fake_operator import PLURAL, FakeOperator
from tests.cluster.gpu_operator_setup import POLICY, deploy, message
from tests.cluster.stacking import REAL_CHARTS, Bench

CRD = "clusterpolicies.nvidia.com"


@pytest.mark.extended
def test_a_state_from_before_the_change_does_not_count(current: Bench) -> None:
    """The operator keeps `ready` until it processes the change."""
    broken = {"nvidia-device-plugin-daemonset": {"sandbox.gpufleet/waiting": "ErrImagePull"}}
    with FakeOperator(current.cluster, broken, since=2, lag=30) as operator:  # 3 s
        assert deploy(current).returncode == 0
        change = {"gpu_operator_values": {"daemonsets": {"priorityClassName": "other"}}}
        done = deploy(current, cluster_timeout=20, **change)
        assert done.returncode == 1, done.output
        assert "states not ready: [state-device-plugin]" in message(done, "GF882")
        assert operator.states == ["ready", "notReady"]


@pytest.mark.extended
def test_what_is_not_ready_is_reported_with_the_reason(bench: Bench) -> None:
    silent = deploy(bench, cluster_timeout=10)
    assert silent.returncode == 1
    assert "the operator has not set its state yet" in message(silent, "GF882")
    broken = {"nvidia-device-plugin-daemonset": {"sandbox.gpufleet/waiting": "ErrImagePull"}}
    with FakeOperator(bench.cluster, broken):
        done = deploy(bench, cluster_timeout=15)
    assert done.returncode == 1
    text = message(done, "GF882")
    assert f"ClusterPolicy {POLICY}: notReady" in text
    objects: Any = client.CustomObjectsApi(bench.cluster.api)
    if "conditions" in objects.get_cluster_custom_object(*PLURAL, POLICY)["status"]:
        assert "states not ready: [state-device-plugin]" in text  # the CRD of v1.8.2 drops them
    assert "DaemonSet nvidia-device-plugin-daemonset: 0 of 3 pods are ready" in text
    assert "k8s-device-plugin:1 cannot be pulled (ErrImagePull" in text
    assert bench.releases() == {"gpu-operator": "deployed"}  # no rollback
    with FakeOperator(bench.cluster):
        done = deploy(bench)
    assert (done.returncode, done.report["changed"]) == (0, 0), done.output


@pytest.mark.extended
def test_a_deleted_crd_is_reported_and_restored(current: Bench) -> None:
    with FakeOperator(current.cluster):
        assert deploy(current).returncode == 0
        extensions: Any = client.ApiextensionsV1Api(current.cluster.api)
        extensions.delete_custom_resource_definition(CRD)
        done = deploy(current)
        assert done.returncode == 0, done.output
        assert "the ClusterPolicy of release gpu-operator/gpu-operator is missing" in done.output
    objects: Any = client.CustomObjectsApi(current.cluster.api)
    assert objects.get_cluster_custom_object(*PLURAL, POLICY)["status"]["state"] == "ready"


@pytest.mark.claim(
    "The GPU Operator is refused beside a device plugin and an exporter.",
    level=5,
)
def test_it_is_refused_beside_plugin_and_exporter(current: Bench) -> None:
    assert current.deploy(monitoring_prometheus="none").returncode == 0
    before = current.releases()
    done = deploy(current)
    assert done.returncode == 1
    blockers = [entry for entry in done.report["findings"] if entry["severity"] == "blocker"]
    assert {entry["code"] for entry in blockers} == {"GF884"}
    remedies = [entry["remedy"] for entry in blockers]
    assert all("gpufleet remove INVENTORY --limit gpu_cluster" in each for each in remedies)
    assert "helm" not in str(remedies), "gpufleet removes its own releases"
    assert current.releases() == before


def test_an_unknown_value_of_the_operators_chart_is_reported(current: Bench) -> None:
    done = deploy(current, cluster_timeout=10, gpu_operator_values={"devicePlugn": {}})
    assert "devicePlugn" in str(done.report["findings"])
    if not REAL_CHARTS:  # upstream's has no schema: it accepts unknown values
        assert current.releases() == {}
