"""Alerts about GPUs as an object that a Prometheus Operator takes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.objects import ObjectSet
from gpufleet.monitoring import findings
from gpufleet.monitoring.alert_models import AlertCatalog, load_alerts
from gpufleet.monitoring.alert_rules import missing_fields, prometheus_rule, rule_groups
from gpufleet.monitoring.extra_rules import EXTRA_RULE_NAME, extra_groups
from gpufleet.monitoring.monitors import (
    MonitorPlan,
    match_labels,
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
    old = None if monitors.install else _old_reader(catalog, facts)
    operated = monitors.install or facts.serves(RULE_CRD)
    if wanted.enabled and operated and (wanted.alerts or wanted.extra_rules):
        labels, found = _labels(wanted, facts, monitors)
        found += monitors.not_read(wanted, facts, wanted.namespace, "PrometheusRule")
        if wanted.alerts and old:
            found.append(findings.RULES_NOT_READ(reader=old))
        elif wanted.alerts:
            names = [] if collected is None else silent_alerts(catalog, collected)
            if names:
                found.append(findings.ALERTS_WITHOUT_FIELDS(names=", ".join(names)))
            groups = rule_groups(catalog, wanted.runbook_base)
            objects.append(prometheus_rule(groups, wanted.namespace, labels))
        if wanted.extra_rules:
            groups = extra_groups(wanted.extra_rules)
            objects.append(prometheus_rule(groups, wanted.namespace, labels, EXTRA_RULE_NAME))
    path = f"/apis/monitoring.coreos.com/v1/namespaces/{wanted.namespace}/prometheusrules"
    return ObjectSet(wanted.namespace, path, ALERTS_PART, tuple(objects)), found


def _old_reader(catalog: AlertCatalog, facts: ClusterFacts) -> str | None:
    """The operator, or a Prometheus of it, that is too old for our rules: its webhook refuses them,
    or, without a webhook, it stops configuring every Prometheus that selects them."""
    for work in facts.workloads:
        for image in work.images if work.wanted else ():
            name, _, tag = image.split("@")[0].rsplit("/", 1)[-1].partition(":")
            operated = work.owner is not None and work.owner.kind == "Prometheus"
            first = catalog.readers.get(name) if name != "prometheus" or operated else None
            if first and () < version_tuple(tag) < version_tuple(first):
                return f"{work.ref} ({name} {tag})"
    return None


def _labels(
    wanted: MonitoringSettings, facts: ClusterFacts, monitors: MonitorPlan
) -> tuple[Mapping[str, str], list[Finding]]:
    """The labels by which an existing Prometheus selects rules, and whether it selects ours."""
    selector = prometheus_selector(wanted, facts, "ruleSelector", install=monitors.install)
    labels = wanted.rule_labels or match_labels(selector)
    if selects_labels(selector, labels):
        return labels, []
    not_selected = findings.RULES_NOT_SELECTED(
        prometheus=monitors.prometheus, selector=selector or "nothing", labels=labels or "none"
    )
    return labels, [not_selected]


def silent_alerts(catalog: AlertCatalog, collected: Collection[str]) -> list[str]:
    """The alerts that lack fields if only these are collected, each with the missing ones."""
    return [
        f"{alert.name} ({', '.join(missing)})"
        for alert in catalog.alerts
        if (missing := missing_fields(catalog, alert, collected))
    ]
