"""Autoscaling on metrics of GPUs: the API for metrics is served, and autoscalers see theirs."""

from __future__ import annotations

from gpufleet.monitoring import findings as kinds
from gpufleet.verify.autoscaling import (
    GROUPS,
    explain_metric,
    explain_unavailable_api,
    gpu_autoscalers,
)
from gpufleet.verify.cluster import CheckedCluster


def test_metrics_api_is_served(cluster: CheckedCluster) -> None:
    """The metrics API for autoscalers is served and responds."""
    cluster.need(cluster.data.get("monitoring_autoscaling"), "monitoring_autoscaling is not set")
    found = explain_unavailable_api(cluster, GROUPS["Pods"])
    cluster.expect(not found, kinds.METRICS_API_DOWN, f"{GROUPS['Pods']} to be served", found)


def test_autoscalers_see_their_metrics(cluster: CheckedCluster) -> None:
    """No autoscaler of GPU pods shows `<unknown>` for a pod metric or an external one."""
    found = gpu_autoscalers(cluster)
    cluster.need(found, "no autoscaler of GPU pods uses such a metric")
    wrong = [
        f"{scaler}: {why}"
        for scaler in found
        if scaler.failing
        for metric in scaler.metrics
        if (why := explain_metric(cluster, scaler, metric))
    ]
    cluster.expect(not wrong, kinds.METRIC_UNKNOWN, "a value for every metric", "; ".join(wrong))
