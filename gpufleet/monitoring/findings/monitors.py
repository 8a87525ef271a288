"""Findings about who collects metrics of the GPUs."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

NO_MONITOR_CRD = Kind(
    "GF874",
    Severity.BLOCKER,
    "The cluster has no ServiceMonitor",
    "monitoring_scrape asks for a ServiceMonitor, and the API does not serve that kind: no "
    "Prometheus Operator is installed.",
    'Set monitoring_prometheus = "install", or monitoring_scrape = "scrape-config" and add the '
    "job to your Prometheus.",
)
NO_PROMETHEUS = Kind(
    "GF875",
    Severity.BLOCKER,
    "There is no Prometheus to join",
    'monitoring_prometheus = "existing", and the cluster has no Prometheus resource.',
    'Set monitoring_prometheus = "install" or "none".',
)
MONITOR_NOT_SELECTED = Kind(
    "GF876",
    Severity.WARNING,
    "Prometheus will not see the exporter",
    "The Prometheus {prometheus} selects monitors by {selector}, and the exporter's have {labels}.",
    "Set monitoring_monitor_labels to labels that it selects.",
)
