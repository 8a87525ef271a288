"""Metrics of autoscalers: what the API lists, and what it answers for one metric."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes import client

from gpufleet.verify.autoscaling import Autoscaler, Metric, explain_metric, gpu_autoscalers
from gpufleet.verify.cluster import CheckedCluster
from gpufleet.verify.inventory import Target

API = "/apis/external.metrics.k8s.io/v1beta1"
KEDA = Metric("External", "s0-prometheus", "scaledobject.keda.sh/name=server")
SAID = "unable to get external metric ml/s0-prometheus: no scaler is active"


class Server:
    """An API server with a list of metrics, of which `valued` have values."""

    def __init__(self, listed: list[str], *valued: str) -> None:
        self.listed, self.valued = listed, valued

    def get(self, path: str) -> Any:
        if path == API:
            return {"resources": [{"name": name} for name in self.listed]}
        name = path.rpartition("/")[2].partition("?")[0]
        return {"items": [{"value": "1"}]} if name in self.valued else "404 not found"


@pytest.mark.parametrize("listed", [[], ["externalmetrics"], ["queue_length"]])
def test_a_metric_with_a_value_need_not_be_listed(listed: list[str]) -> None:
    """kedacore/keda#4224, GoogleCloudPlatform/k8s-stackdriver#523: the list may be empty."""
    server: Any = Server(listed, KEDA.name)
    scaler = Autoscaler("ml", "server", "Deployment server", "app=server", (KEDA,), SAID)
    assert explain_metric(server, scaler, KEDA) is None
    server = Server(listed)
    assert explain_metric(server, scaler, KEDA) == f"s0-prometheus has no value: {SAID}"


def test_a_close_name_is_offered() -> None:
    metric = Metric("External", "gpu_utilisation_percent", "")
    scaler = Autoscaler("ml", "server", "Deployment server", "app=server", (metric,), SAID)
    server: Any = Server(["gpu_utilization_percent"])
    why = explain_metric(server, scaler, metric)
    assert why
    assert "did you mean gpu_utilization_percent?" in why


@pytest.mark.parametrize(
    ("reason", "failing"), [("ScalingDisabled", ""), ("FailedGetExternalMetric", SAID)]
)
def test_a_target_without_replicas_is_no_failure(
    reason: str, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kedacore/keda#7527: KEDA scales to 0, and the autoscaler then says that it is not active."""
    condition = {"type": "ScalingActive", "status": "False", "reason": reason, "message": SAID}
    scaler = {
        "metadata": {"namespace": "ml", "name": "server"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "server"},
            "metrics": [{"type": "External", "external": {"metric": {"name": KEDA.name}}}],
        },
        "status": {"conditions": [condition]},
    }
    part = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    target = {"spec": {"selector": {}, "template": {"spec": {"containers": [part]}}}}
    group = SimpleNamespace(versions=[SimpleNamespace(version="v2")])
    custom = client.CustomObjectsApi
    monkeypatch.setattr(client.AutoscalingApi, "get_api_group", lambda api, **how: group)
    listed = {"items": [scaler]}
    monkeypatch.setattr(custom, "list_cluster_custom_object", lambda *how, **more: listed)
    monkeypatch.setattr(custom, "get_namespaced_custom_object", lambda *how, **more: target)
    cluster = CheckedCluster(Target("@local", ("gpu_cluster",), {}))
    cluster.__dict__["api"] = client.ApiClient(client.Configuration())
    (found,) = gpu_autoscalers(cluster)
    assert (found.failing, found.metrics[0].name) == (failing, KEDA.name)
