"""The objects of kube-prometheus-stack by its values, the user's included. Pure.

Source: templates/_helpers.tpl of kube-prometheus-stack 45.10.1, 72.9.1 and 88.5.3, and the field
serviceName of a Prometheus (read 2026-11-27):
https://prometheus-operator.dev/docs/api-reference/api/#monitoring.coreos.com/v1.PrometheusSpec
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufleet.core.merge import value_at
from gpufleet.helm.release import Release

GRAFANA_SECRET = "gpufleet-grafana"
GRAFANA_USER = "admin"
# the operator creates it in each namespace with a Prometheus
PROMETHEUS_SERVICE = "prometheus-operated"


def prometheus_url(namespace: str, spec: Mapping[str, Any]) -> str:
    """Where pods reach a Prometheus. `spec`: of its object, as the chart's prometheusSpec too.

    The operator's Service has the same name and port whatever names and ports the chart gets.
    """
    scheme = "https" if value_at(spec, "web.tlsConfig") is not None else "http"
    prefix = str(spec.get("routePrefix") or "").rstrip("/")
    service = spec.get("serviceName") or PROMETHEUS_SERVICE
    return f"{scheme}://{service}.{namespace}.svc:9090{prefix}"


def installed_url(stack: Release) -> str:
    """Where pods reach the Prometheus that a release installs."""
    spec = value_at(stack.values, "prometheus.prometheusSpec")
    return prometheus_url(stack.values.get("namespaceOverride") or stack.namespace, spec or {})


def grafana_of(stack: Release | None) -> Mapping[str, Any] | None:
    """The values of the Grafana that a release installs, or None if it installs none."""
    grafana = (stack.values.get("grafana") or {}) if stack else {}
    return grafana if stack and value_at(grafana, "enabled", True) else None


def password_secret(stack: Release | None) -> tuple[str, str] | None:
    """Namespace and name of our Secret with Grafana's password, if its Grafana uses it."""
    grafana = grafana_of(stack)
    if not stack or value_at(grafana, "admin.existingSecret") != GRAFANA_SECRET:
        return None
    return value_at(grafana, "namespaceOverride") or stack.namespace, GRAFANA_SECRET


def alertmanager_namespace(stack: Release) -> str:
    """The namespace of a release's Alertmanager."""
    override = value_at(stack.values, "alertmanager.namespaceOverride")
    return override or stack.values.get("namespaceOverride") or stack.namespace
