"""Decides which Prometheus scrapes the exporter, and how it finds it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from gpufleet.core.findings import Finding
from gpufleet.core.merge import value_at
from gpufleet.core.versions import version_tuple
from gpufleet.helm.builder import STACK, managed_release
from gpufleet.kube.facts import ClusterFacts, ReleaseRef
from gpufleet.kube.objects import MANAGED_BY_LABELS
from gpufleet.monitoring import findings
from gpufleet.monitoring.models import load_scrape
from gpufleet.monitoring.settings import MonitoringSettings

NAME_LABEL = "kubernetes.io/metadata.name"  # of every namespace
MONITOR_CRD = "servicemonitors.monitoring.coreos.com"


@dataclass(frozen=True, slots=True)
class MonitorPlan:
    """`install`: True to install kube-prometheus-stack. `labels`: of a ServiceMonitor.

    `prometheus`, `selector`: the Prometheus that selects it; a selector of None selects nothing.
    `discovery`: the role by which Prometheus' own job finds the exporter.
    """

    install: bool
    scrape: Literal["service-monitor", "scrape-config", "none"]
    discovery: Literal["endpoints", "endpointslice"]
    labels: Mapping[str, str]
    prometheus: str
    selector: Mapping[str, Any] | None
    findings: tuple[Finding, ...] = ()

    def not_selected(self, labels: Mapping[str, str]) -> tuple[Finding, ...]:
        """A finding if a ServiceMonitor with these labels is not selected."""
        if self.scrape != "service-monitor" or selects_labels(self.selector, labels):
            return ()
        found = findings.MONITOR_NOT_SELECTED(
            prometheus=self.prometheus,
            selector=self.selector or "nothing",
            labels=dict(labels) or "none",
        )
        return (found,)

    def not_read(
        self,
        wanted: MonitoringSettings,
        facts: ClusterFacts,
        namespace: str,
        kind: Literal["ServiceMonitor", "PrometheusRule"] = "ServiceMonitor",
    ) -> list[Finding]:
        """A finding if the Prometheus does not read objects of that kind in a namespace. Without a
        selector it reads its own namespace."""
        of_monitors = kind == "ServiceMonitor"
        if of_monitors and self.scrape != "service-monitor":
            return []
        key = f"{'serviceMonitor' if of_monitors else 'rule'}NamespaceSelector"
        selector = prometheus_selector(wanted, facts, key, install=self.install)
        there = facts.namespaces.get(namespace)
        labels = {NAME_LABEL: namespace, **(there.labels if there else MANAGED_BY_LABELS)}
        own = selector is None and facts.prometheus and facts.prometheus.namespace == namespace
        if own or selects_labels(selector, labels):
            return []
        unread = findings.NAMESPACE_NOT_READ(
            prometheus=self.prometheus,
            kind=f"{kind}s",
            namespace=namespace,
            key=key,
            selector=selector or "not set, which selects its own namespace",
        )
        return [unread]


def plan_monitors(
    wanted: MonitoringSettings, facts: ClusterFacts, *, offered: bool, adopt: bool, operated: bool
) -> MonitorPlan:
    """Decide if a Prometheus is installed, and how it finds the exporter. `offered`: the exporter's
    chart creates a ServiceMonitor; `adopt`: take over a release under our name; `operated`: another
    Prometheus Operator runs."""
    slices = (facts.server.major, facts.server.minor) >= version_tuple(load_scrape().slices_from)
    discovery: Literal["endpoints", "endpointslice"] = "endpointslice" if slices else "endpoints"
    there, stack = facts.prometheus, ReleaseRef(wanted.namespace, STACK)
    ours = managed_release(stack, facts, adopt=adopt) is not None
    install = wanted.enabled and (
        wanted.prometheus == "install"
        or (wanted.prometheus == "auto" and (ours or not (there or operated)))
    )
    problems: list[Finding] = []
    if wanted.enabled and wanted.prometheus == "existing" and not there:
        setting = 'monitoring_prometheus = "existing"'
        problems.append(findings.NO_PROMETHEUS(setting=setting, kind="Prometheus resource"))
    has_crd = install or facts.serves(MONITOR_CRD)
    if wanted.scrape == "service-monitor" and not has_crd:
        setting = 'monitoring_scrape = "service-monitor"'
        problems.append(findings.NO_PROMETHEUS(setting=setting, kind="kind ServiceMonitor"))
    scrape = _scrape(wanted, has_crd and offered, install)
    selector = prometheus_selector(wanted, facts, "serviceMonitorSelector", install=install)
    labels = dict(wanted.monitor_labels)
    if scrape == "service-monitor":
        labels = labels or match_labels(selector)
    name = f"{there.namespace}/{there.name}" if there and not install else str(stack)
    plan = MonitorPlan(install, scrape, discovery, labels, name, selector)
    return replace(plan, findings=(*problems, *plan.not_selected(labels)))


def prometheus_selector(
    wanted: MonitoringSettings, facts: ClusterFacts, key: str, *, install: bool
) -> Mapping[str, Any] | None:
    """A selector of the existing Prometheus, or of the Prometheus that the chart installs with the
    user's values. None selects nothing."""
    if not install:
        there = facts.prometheus if wanted.prometheus != "none" else None
        return there.spec.get(key) if there else {}
    values = value_at(wanted.values, "prometheus.prometheusSpec")
    if not isinstance(values, Mapping):
        return {}
    by_release = values.get(f"{key}NilUsesHelmValues")
    return values.get(key) or ({"matchLabels": {"release": STACK}} if by_release else {})


def _scrape(
    wanted: MonitoringSettings, has_crd: bool, install: bool
) -> Literal["service-monitor", "scrape-config", "none"]:
    if not wanted.enabled:
        return "none"
    if wanted.prometheus == "none":  # another program may read ServiceMonitors
        return "service-monitor" if wanted.scrape == "service-monitor" and has_crd else "none"
    if wanted.scrape == "scrape-config":
        return "scrape-config"
    return "service-monitor" if has_crd else ("scrape-config" if install else "none")


def match_labels(selector: Mapping[str, Any] | None) -> dict[str, str]:
    """Labels that a selector of a Prometheus asks for."""
    found = dict((selector or {}).get("matchLabels") or {})
    for each in (selector or {}).get("matchExpressions") or ():
        if each["operator"] in ("In", "Exists"):
            found.setdefault(each["key"], (each.get("values") or ["true"])[0])
    return found


def selects_labels(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """True if a selector selects an object with these labels. None selects nothing."""
    if selector is None:
        return False
    wanted = dict(selector.get("matchLabels") or {})
    return wanted.items() <= dict(labels).items() and all(
        _fits(each, labels) for each in selector.get("matchExpressions") or ()
    )


def _fits(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """True if labels fit an expression of a selector: In, NotIn, Exists or DoesNotExist."""
    value, values = labels.get(expression["key"]), expression.get("values")
    found = value in values if values else value is not None
    return found == (expression["operator"] in ("In", "Exists"))
