"""Which Prometheus scrapes the exporter, and how it finds it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpufleet.core.findings import Finding
from gpufleet.kube.facts import ClusterFacts, PrometheusInstance
from gpufleet.monitoring.findings import monitors as findings
from gpufleet.monitoring.settings import MonitoringSettings

CHART = "kube-prometheus-stack"
MONITOR_CRD = "servicemonitors.monitoring.coreos.com"
SLICES_FROM = 33  # minor from which on the Endpoints API is deprecated


@dataclass(frozen=True, slots=True)
class MonitorPlan:
    """`install`: whether kube-prometheus-stack is ours to install. `labels`: of a ServiceMonitor.

    `discovery`: the role by which Prometheus' own job finds the exporter.
    """

    install: bool
    scrape: Literal["service-monitor", "scrape-config", "none"]
    discovery: Literal["endpoints", "endpointslice"]
    labels: Mapping[str, str]
    findings: tuple[Finding, ...] = ()


def plan_monitors(wanted: MonitoringSettings, facts: ClusterFacts, version: str) -> MonitorPlan:
    """Whether to install a Prometheus, and how it finds the exporter."""
    discovery: Literal["endpoints", "endpointslice"]
    discovery = "endpointslice" if facts.server.minor >= SLICES_FROM else "endpoints"
    there = _joined(facts)
    ours = facts.release(wanted.namespace, CHART) is not None
    install = wanted.enabled and (
        wanted.prometheus == "install" or (wanted.prometheus == "auto" and (ours or not there))
    )
    problems: list[Finding] = []
    if wanted.enabled and wanted.prometheus == "existing" and not there:
        problems.append(findings.NO_PROMETHEUS())
    has_crd = install or facts.serves(MONITOR_CRD)
    if wanted.scrape == "service-monitor" and not has_crd:
        problems.append(findings.NO_MONITOR_CRD())
    scrape = _scrape(wanted, has_crd, install)
    labels = dict(wanted.monitor_labels)
    if scrape == "service-monitor" and not install and there:
        labels = labels or _match_labels(there)
        if not _selects(there, labels):
            problems.append(
                findings.MONITOR_NOT_SELECTED(
                    prometheus=f"{there.namespace}/{there.name}",
                    selector=there.monitor_selector,
                    labels=labels or "none",
                )
            )
    return MonitorPlan(install, scrape, discovery, labels, tuple(problems))


def _joined(facts: ClusterFacts) -> PrometheusInstance | None:
    """An existing Prometheus that is not ours; with several, the first by name."""
    return min(facts.prometheuses, key=lambda found: (found.namespace, found.name), default=None)


def _scrape(
    wanted: MonitoringSettings, has_crd: bool, install: bool
) -> Literal["service-monitor", "scrape-config", "none"]:
    if not wanted.enabled or wanted.prometheus == "none":
        return "none"
    if wanted.scrape == "scrape-config":
        return "scrape-config"
    return "service-monitor" if has_crd else ("scrape-config" if install else "none")


def _match_labels(there: PrometheusInstance) -> dict[str, str]:
    """The labels that its selector asks for."""
    return dict((there.monitor_selector or {}).get("matchLabels") or {})


def _selects(there: PrometheusInstance, labels: Mapping[str, str]) -> bool:
    """Whether a monitor with these labels is selected, by matchLabels alone."""
    selector = there.monitor_selector
    if selector is None:
        return False
    asked = selector.get("matchLabels") or {}
    return all(labels.get(name) == value for name, value in asked.items())
