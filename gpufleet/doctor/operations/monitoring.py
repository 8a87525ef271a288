"""Asks the Prometheus of a cluster about its exporters and about the rules of gpufleet."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from gpufleet.core.load_settings import load_role
from gpufleet.doctor.models import Link
from gpufleet.doctor.monitoring import (
    AGE_QUERY,
    UP_QUERY,
    ClusterMonitoring,
    ExporterPod,
    exporter_pods,
    judge_monitoring,
    silent_prometheus,
)
from gpufleet.doctor.plugin_pods import exporter_daemonsets
from gpufleet.doctor.rules import judge_rules
from gpufleet.kube.objects import MANAGED_BY_LABELS
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.kube.prometheus import (
    PrometheusService,
    choose_prometheus,
    rules_of,
    selects_prometheus,
    series_of,
)
from gpufleet.monitoring.settings import MonitoringSettings

OPERATED_KINDS = "/apis/monitoring.coreos.com/v1"
MONITORING_KEYS = ("monitoring_enabled", "monitoring_namespace", "monitoring_prometheus")


def read_monitoring(access: KubeAccess, data: Mapping[str, Any]) -> ClusterMonitoring | None:
    """Ask the Prometheus of a cluster. Returns None without a Prometheus that gpufleet relies on.
    `data`: of the cluster in the inventory."""
    own = {key: data[key] for key in MONITORING_KEYS if key in data}
    settings = load_role(MonitoringSettings, own, [])
    if settings is None or not settings.enabled or settings.prometheus == "none":
        return None
    try:
        api = ClusterApi(access)
    except ClusterProblem as problem:
        return silent_prometheus(None, problem.findings[0].message)
    try:
        return _read_answers(api, settings)
    except ClusterProblem as problem:
        return silent_prometheus(None, problem.findings[0].message)
    finally:
        api.close()


def _read_answers(api: ClusterApi, settings: MonitoringSettings) -> ClusterMonitoring | None:
    place = _find(api, settings)
    if place is None:
        return None
    query, now = f"{place.path}/query", int(time.time())
    up = series_of(api.ask_service(query, query=UP_QUERY))
    if isinstance(up, str):
        return silent_prometheus(place, up)
    ages = series_of(api.ask_service(query, query=AGE_QUERY))
    known_ages = [] if isinstance(ages, str) else ages
    return judge_monitoring(place, up, known_ages, _exporters(api), _alerts(api, place, now), now)


def _find(api: ClusterApi, settings: MonitoringSettings) -> PrometheusService | None:
    """The Prometheus that gpufleet relies on. One without an operator counts only if the inventory
    names it: `monitoring_prometheus = "existing"`."""

    def kept(service: Any) -> Any:
        return service if selects_prometheus(service["spec"].get("selector")) else None

    services = api.list("/api/v1/services", "application/json", kept)
    resources = _list_kind(api, "prometheuses") if services else []
    place = choose_prometheus(services, resources, settings.namespace)
    named = settings.prometheus == "existing"
    return place if place and (place.operated or named) else None


def _list_kind(api: ClusterApi, kind: str, **query: str) -> list[Any]:
    """Objects of the Prometheus Operator. [] if the API server does not serve the kind."""
    try:
        return api.list(f"{OPERATED_KINDS}/{kind}", **query)
    except ApiError as error:
        if not error.is_missing:
            raise
        return []


def _exporters(api: ClusterApi) -> list[ExporterPod]:
    owners = exporter_daemonsets(api.list("/apis/apps/v1/daemonsets"))
    spaces = sorted({owner.namespace for owner in owners.values()})
    pods = [pod for space in spaces for pod in api.list(f"/api/v1/namespaces/{space}/pods")]
    nodes = api.list("/api/v1/nodes", "application/json", _name_and_machine) if pods else []
    return exporter_pods(owners, pods, dict(nodes))


def _name_and_machine(node: Any) -> tuple[str, str]:
    about = (node.get("status") or {}).get("nodeInfo") or {}
    return node["metadata"]["name"], str(about.get("machineID") or "")


def _alerts(api: ClusterApi, place: PrometheusService, now: int) -> Link | None:
    selector = ",".join(f"{key}={value}" for key, value in MANAGED_BY_LABELS.items())
    written = _list_kind(api, "prometheusrules", labelSelector=selector)
    if not written:
        return None
    return judge_rules(place, written, rules_of(api.ask_service(f"{place.path}/rules")), now)
