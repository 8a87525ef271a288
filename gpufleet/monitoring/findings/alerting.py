"""Findings about alerts, their receivers, and dashboards."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

RULES_NOT_SELECTED = warning(
    "GF896",
    "Prometheus does not select the alerts",
    "Prometheus {prometheus} selects rules by {selector}; the GPU rules have {labels}.",
    "Set monitoring_rule_labels to labels that it selects; a Prometheus that selects nothing "
    "needs a ruleSelector.",
)
ALERTS_WITHOUT_FIELDS = warning(
    "GF897",
    "Alerts without metrics",
    "The exporter does not collect the fields that these alerts use, so they never fire: {names}.",
    "Use a dcgm-exporter from 3.6.0 to 4.8 (cluster_chart_versions), or list the fields in "
    "monitoring_counters.",
)
RECEIVERS_WRONG = blocker(
    "GF898",
    "No receivers for alerts",
    "monitoring_alert_receivers is the Secret {secret}, but {why}.",
    "Put a list of Alertmanager receivers into its key receivers.yaml, one of them named default; "
    "docs/monitoring.md has an example.",
)
DASHBOARD_TOO_LARGE = blocker(
    "GF895",
    "Dashboard too large for a ConfigMap",
    "{name} has {size} bytes; a ConfigMap holds at most {largest}.",
    "Split it, or remove it from templates/monitoring/dashboards.",
)
