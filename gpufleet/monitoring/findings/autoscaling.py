"""Findings about autoscaling on metrics of GPUs, and of its checks."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

METRICS_API_TAKEN = warning(
    "GF890",
    "Metrics API already served",
    "{api} is already served by {found}, which gpufleet does not manage, and a cluster has this "
    "API only once; prometheus-adapter is skipped.",
    "Add the rules of `gpufleet catalog autoscaling rules` to it, or remove it and run again.",
)
EXTERNAL_API_TAKEN = info(
    "GF891",
    "External metrics API already served",
    "{api} is already served by {found} (KEDA requires it), so prometheus-adapter gets rules for "
    "pod metrics only.",
    "No action required, unless the adapter should serve external metrics: then remove the other "
    "one.",
)
ADAPTER_WITHOUT_PROMETHEUS = blocker(
    "GF892",
    "Autoscaling requires a Prometheus",
    "monitoring_autoscaling is set, but gpufleet neither installs a Prometheus nor knows one: "
    "{why}.",
    "Set monitoring_prometheus_url to the Prometheus that scrapes the exporter, as the cluster's "
    "pods reach it.",
)
METRIC_UNKNOWN = blocker(
    "GF775",
    "Autoscaler gets no metric",
    "Expected {expected}; found {found}.",
    "Use a metric name and labels that exist: kubectl get --raw "
    "/apis/custom.metrics.k8s.io/v1beta1",
    description="Each HorizontalPodAutoscaler on GPU metrics must read a value for its metric. "
    "The check compares the names and labels it requests with those that the metrics API serves.",
)
METRICS_API_DOWN = blocker(
    "GF776",
    "Metrics API not available",
    "Expected {expected}; found {found}.",
    "Find out why prometheus-adapter does not respond: kubectl -n monitoring logs "
    "deployment/prometheus-adapter",
    description="The APIService of the custom or external metrics API must be available, and the "
    "API must respond.",
)
