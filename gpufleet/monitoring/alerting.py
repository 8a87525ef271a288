"""Alerts about GPUs as an object that a Prometheus Operator takes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gpufleet.core.findings import Finding
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.objects import ObjectSet
from gpufleet.monitoring import findings
from gpufleet.monitoring.alert_models import AlertCatalog, load_alerts
from gpufleet.monitoring.alert_rules import missing_fields, prometheus_rule, rule_groups
from gpufleet.monitoring.extra_rules import EXTRA_RULE_NAME as EXTRA
from gpufleet.monitoring.extra_rules import extra_groups
from gpufleet.monitoring.monitors import (
    MonitorPlan,
    match_labels,
    not_read,
    prometheus_name,
    prometheus_selector,
    selects_labels,
)
from gpufleet.monitoring.settings import MonitoringSettings

ALERTS_PART = "alerts"
RULE_CRD = "prometheusrules.monitoring.coreos.com"


def plan_alerts(
    wanted: MonitoringSettings,
    facts: ClusterFacts,
    monitors: MonitorPlan,
    collected: Collection[str] | None,
) -> tuple[ObjectSet, list[Finding]]:
    """A PrometheusRule of gpufleet's and one of the user's files, as far as they are wanted; none
    if no operator reads them.

    `collected`: the fields that our exporter collects, or None for another exporter.
    """
    catalog = load_alerts()
    found: list[Finding] = []
    objects = []
    operated = monitors.install or facts.serves(RULE_CRD)
    if wanted.enabled and operated and (wanted.alerts or wanted.extra_rules):
        labels, found = _labels(wanted, facts, monitors)
        found += not_read(
            wanted, facts, "PrometheusRule", wanted.namespace, install=monitors.install
        )
        if wanted.alerts:
            found += _silent(catalog, collected)
            groups = rule_groups(catalog, wanted.runbook_base)
            objects.append(prometheus_rule(groups, wanted.namespace, labels))
        if wanted.extra_rules:
            groups = extra_groups(wanted.extra_rules)
            objects.append(prometheus_rule(groups, wanted.namespace, labels, EXTRA))
    path = f"/apis/monitoring.coreos.com/v1/namespaces/{wanted.namespace}/prometheusrules"
    return ObjectSet(wanted.namespace, path, ALERTS_PART, tuple(objects)), found


def _labels(
    wanted: MonitoringSettings, facts: ClusterFacts, monitors: MonitorPlan
) -> tuple[Mapping[str, str], list[Finding]]:
    """The labels by which an existing Prometheus selects rules, and whether it selects ours."""
    selector = prometheus_selector(wanted, facts, "ruleSelector", install=monitors.install)
    labels = wanted.rule_labels or match_labels(selector)
    if selects_labels(selector, labels):
        return labels, []
    not_selected = findings.RULES_NOT_SELECTED(
        prometheus=prometheus_name(wanted, facts, install=monitors.install),
        selector=selector or "nothing",
        labels=labels or "none",
    )
    return labels, [not_selected]


def _silent(catalog: AlertCatalog, collected: Collection[str] | None) -> list[Finding]:
    """A finding if alerts never fire because our exporter does not collect their fields."""
    names = [] if collected is None else silent_alerts(catalog, collected)
    return [findings.ALERTS_WITHOUT_FIELDS(names=", ".join(names))] if names else []


def silent_alerts(catalog: AlertCatalog, collected: Collection[str]) -> list[str]:
    """The alerts that lack fields if only these are collected, each with the missing ones."""
    return [
        f"{alert.name} ({', '.join(missing)})"
        for alert in catalog.alerts
        if (missing := missing_fields(catalog, alert, collected))
    ]
