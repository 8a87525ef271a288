"""Findings about alerts and whom they reach, and about dashboards."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

RULES_NOT_SELECTED = Kind(
    "GF896",
    Severity.WARNING,
    "Prometheus will not see the alerts",
    "The Prometheus {prometheus} selects rules by {selector}, and those about GPUs have {labels}.",
    "Set monitoring_rule_labels to labels that it selects; a Prometheus that selects nothing needs "
    "a ruleSelector.",
)
ALERTS_WITHOUT_FIELDS = Kind(
    "GF897",
    Severity.WARNING,
    "Some alerts will never fire",
    "The exporter does not collect the fields that these alerts are made of: {names}.",
    "Take a dcgm-exporter from 3.6.0 to 4.8 (cluster_chart_versions), or name the fields in "
    "monitoring_counters.",
)
RECEIVERS_WRONG = Kind(
    "GF898",
    Severity.BLOCKER,
    "There are no receivers for alerts",
    "monitoring_alert_receivers names the Secret {secret}, and {why}.",
    "Put a list of Alertmanager's receivers into its key receivers.yaml, one of them with the name "
    "default; docs/monitoring.md has an example.",
)
DASHBOARD_TOO_LARGE = Kind(
    "GF895",
    Severity.BLOCKER,
    "A dashboard does not fit into a ConfigMap",
    "{name} has {size} bytes, and a ConfigMap takes {largest}.",
    "Split it, or take it out of templates/monitoring/dashboards.",
)
