"""The release of prometheus-adapter, or the finding that prevents it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpufleet.core.merge import value_at, with_value
from gpufleet.core.versions import version_tuple
from gpufleet.helm.builder import ADAPTER, ReleaseBuilder, chart_values
from gpufleet.helm.release import Release
from gpufleet.kube.facts import ApiService
from gpufleet.monitoring import findings
from gpufleet.monitoring.autoscaling_models import load_autoscaling
from gpufleet.monitoring.autoscaling_rules import custom_rules, external_rules
from gpufleet.monitoring.prometheus_stack import installed_url, prometheus_url
from gpufleet.monitoring.settings import MonitoringSettings


def plan_adapter(
    build: ReleaseBuilder, wanted: MonitoringSettings, stack: Release | None
) -> Release | None:
    """prometheus-adapter with rules for GPUs, if it is enabled and its API is free or ours.

    `stack`: the release of kube-prometheus-stack, or None if it is not installed.
    """
    if not (wanted.enabled and wanted.autoscaling):
        return None
    catalog = load_autoscaling()  # read only if it is needed
    apis = catalog.apis
    taken = _taken(build, apis.custom)
    if taken:
        build.findings.append(findings.METRICS_API_TAKEN(api=apis.custom, found=taken.service))
        return None
    url = adapter_url(wanted) or _prometheus(build, wanted, stack)
    if url is None:
        why = f'monitoring_prometheus = "{wanted.prometheus}"'
        build.findings.append(findings.ADAPTER_WITHOUT_PROMETHEUS(why=why))
        return None
    others = _taken(build, apis.external)
    if others:
        build.findings.append(findings.EXTERNAL_API_TAKEN(api=apis.external, found=others.service))
    chart = catalog.adapter
    frozen = version_tuple(build.charts[ADAPTER].version) < version_tuple(chart.image_below)
    values = chart_values(
        "monitoring/prometheus-adapter.yaml",
        url=url,
        relist=chart.relist,
        image=chart.image if frozen else None,
        custom=custom_rules(catalog),
        external=[] if others else external_rules(catalog),
    )
    theirs = _without_second_port(wanted.adapter_values)
    return build.release(ADAPTER, wanted.namespace, values, wanted=theirs)


def _taken(build: ReleaseBuilder, group: str) -> ApiService | None:
    """The APIService of an API group that is not of our own release, if any."""
    services = build.facts.api_services
    there = [services[name] for name in sorted(services) if name.split(".", 1)[1] == group]
    ours = build.managed(ADAPTER)
    return next((found for found in there if not ours or found.release != ours.ref), None)


def _without_second_port(theirs: Mapping[str, Any]) -> Mapping[str, Any]:
    """The user's values, without a port in the URL: the chart appends another one."""
    has_port = re.search(r"//[^/]+:\d+", str(value_at(theirs, "prometheus.url", "")))
    return with_value(theirs, "prometheus.port", 0) if has_port else theirs


def adapter_url(wanted: MonitoringSettings) -> str | None:
    """The Prometheus that the user names for the adapter."""
    return value_at(wanted.adapter_values, "prometheus.url") or wanted.prometheus_url


def _prometheus(
    build: ReleaseBuilder, wanted: MonitoringSettings, stack: Release | None
) -> str | None:
    """The URL of the installed or existing Prometheus for pods, or None without a Prometheus."""
    if stack:
        return installed_url(stack)
    first = build.facts.prometheus
    if wanted.prometheus == "none" or first is None or first.spec.get("listenLocal"):
        return None
    return prometheus_url(first.namespace, first.spec)
