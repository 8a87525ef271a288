"""Which Prometheus scrapes the exporter, and how it finds it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.kube.facts import ClusterFacts
from gpufleet.monitoring import findings
from gpufleet.monitoring.models import load_scrape
from gpufleet.monitoring.settings import MonitoringSettings

CHART = "kube-prometheus-stack"
MONITOR_CRD = "servicemonitors.monitoring.coreos.com"


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


def plan_monitors(wanted: MonitoringSettings, facts: ClusterFacts) -> MonitorPlan:
    """Whether to install a Prometheus, and how it finds the exporter."""
    discovery: Literal["endpoints", "endpointslice"]
    slices = (facts.server.major, facts.server.minor) >= version_tuple(load_scrape().slices_from)
    discovery = "endpointslice" if slices else "endpoints"
    there = facts.prometheus
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
        selector = there.spec.get("serviceMonitorSelector")
        labels = labels or match_labels(selector)
        if not selects(selector, labels):
            problems.append(
                findings.MONITOR_NOT_SELECTED(
                    prometheus=f"{there.namespace}/{there.name}",
                    selector=selector,
                    labels=labels or "none",
                )
            )
    return MonitorPlan(install, scrape, discovery, labels, tuple(problems))


def _scrape(
    wanted: MonitoringSettings, has_crd: bool, install: bool
) -> Literal["service-monitor", "scrape-config", "none"]:
    if not wanted.enabled or wanted.prometheus == "none":
        return "none"
    if wanted.scrape == "scrape-config":
        return "scrape-config"
    return "service-monitor" if has_crd else ("scrape-config" if install else "none")


def match_labels(selector: Mapping[str, Any] | None) -> dict[str, str]:
    """The labels that a selector of a Prometheus asks for."""
    return dict((selector or {}).get("matchLabels") or {})


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels is selected, by matchLabels alone; None selects
    nothing."""
    return selector is not None and match_labels(selector).items() <= dict(labels).items()
