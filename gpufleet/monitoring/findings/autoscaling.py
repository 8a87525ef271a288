"""Findings about autoscaling on metrics of GPUs, and of its checks."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

METRICS_API_TAKEN = Kind(
    "GF890",
    Severity.WARNING,
    "Something else offers metrics to autoscalers",
    "{api} is offered by {found}, which is not gpufleet's, and a cluster has that API once. "
    "prometheus-adapter is left out; nothing was taken over.",
    "Give the one that is there the rules of `gpufleet catalog autoscaling rules`, or remove it "
    "and run again.",
)
EXTERNAL_API_TAKEN = Kind(
    "GF891",
    Severity.INFO,
    "External metrics are somebody else's",
    "{api} is offered by {found} (KEDA needs it for itself), so prometheus-adapter gets rules for "
    "metrics of pods alone.",
    "Nothing, unless you want external metrics from the adapter: then remove that one.",
)
ADAPTER_WITHOUT_PROMETHEUS = Kind(
    "GF892",
    Severity.BLOCKER,
    "Autoscaling needs a Prometheus",
    "monitoring_autoscaling is set, and gpufleet neither installs a Prometheus nor knows one: "
    "{why}.",
    "Set monitoring_prometheus_url to the Prometheus that scrapes the exporter, as the cluster's "
    "pods reach it.",
)
METRIC_UNKNOWN = Kind(
    "GF775",
    Severity.BLOCKER,
    "An autoscaler sees no metric",
    "expected {expected}; found {found}",
    "give the autoscaler a name and labels that are there: kubectl get --raw "
    "/apis/custom.metrics.k8s.io/v1beta1",
)
METRICS_API_DOWN = Kind(
    "GF776",
    Severity.BLOCKER,
    "The API for metrics is not served",
    "expected {expected}; found {found}",
    "see why prometheus-adapter does not answer: kubectl -n monitoring logs "
    "deployment/prometheus-adapter",
)
