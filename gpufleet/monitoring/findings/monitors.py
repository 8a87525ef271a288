"""Findings about the collection of GPU metrics."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

NO_MONITOR_CRD = blocker(
    "GF874",
    "ServiceMonitor not served by the cluster",
    "monitoring_scrape requests a ServiceMonitor, but the API does not serve that kind: no "
    "Prometheus Operator is installed.",
    'Set monitoring_prometheus = "install", or monitoring_scrape = "scrape-config" and add the '
    "job to your Prometheus.",
)
NO_PROMETHEUS = blocker(
    "GF875",
    "No existing Prometheus",
    'monitoring_prometheus = "existing", but the cluster has no Prometheus resource.',
    'Set monitoring_prometheus = "install" or "none".',
)
MONITOR_NOT_SELECTED = warning(
    "GF876",
    "Prometheus does not select the exporter",
    "Prometheus {prometheus} selects monitors by {selector}; the exporter's have {labels}.",
    "Set monitoring_monitor_labels to labels that it selects.",
)
