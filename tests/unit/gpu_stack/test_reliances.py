"""A user's values that contradict values on which other parts of a plan rely."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.core.merge import value_at, with_value
from gpufleet.gpu_stack.reliances import load_reliances
from tests.unit.gpu_stack.gpu_clusters import CATALOG, codes, stack, values

STACK = "monitoring_values"
RECEIVERS = {"monitoring_alert_receivers": "oncall"}
SCRAPE = {"monitoring_scrape": "scrape-config"}
SLICING = {"device_plugin_time_slicing": 4}
CONFIG = {"route": {"receiver": "pager"}, "receivers": [{"name": "pager"}]}
RUNTIME = {"device_plugin_runtime_class": "nvidia"}
SPEC = "prometheus.prometheusSpec"
JOBS = f"{SPEC}.additionalScrapeConfigs"
OURS_TOO = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["web", "monitoring"]}
    ]
}
SIDECAR = "grafana.sidecar.dashboards"
NFD_PCI = "worker.config.sources.pci"


@pytest.mark.parametrize(
    ("settings", "key", "path", "value"),
    [
        (SCRAPE, STACK, JOBS, "{{ tpl .Values.jobs . }}"),
        (SCRAPE, STACK, JOBS, None),
        (SCRAPE, STACK, f"{JOBS}Secret", {"enabled": True, "name": "mine", "key": "jobs"}),
        (SCRAPE, "monitoring_exporter_values", "nameOverride", "gpu"),
        (SCRAPE, "monitoring_exporter_values", "serviceMonitor.enabled", True),
        (RECEIVERS, STACK, "alertmanager.enabled", False),
        (RECEIVERS, STACK, "alertmanager.config", CONFIG),
        (RECEIVERS, STACK, "alertmanager.config", {"global": {"resolve_timeout": "1m"}}),
        (RECEIVERS, STACK, "alertmanager.stringConfig", "route: {}"),
        (RECEIVERS, STACK, "alertmanager.alertmanagerSpec.configSecret", "theirs"),
        (
            RECEIVERS,
            STACK,
            "alertmanager.alertmanagerSpec.alertmanagerConfiguration",
            {"name": "theirs"},
        ),
        ({"monitoring_grafana_existing_secret": "mine"}, STACK, "grafana.adminPassword", "x"),
        (
            {"monitoring_grafana_existing_secret": "mine"},
            STACK,
            "grafana.admin.existingSecret",
            "other",
        ),
        ({"monitoring_node_port": 30090}, STACK, "prometheus.service.type", "ClusterIP"),
        ({"monitoring_node_port": 30090}, STACK, "prometheus.service.nodePort", 30091),
        ({"monitoring_grafana_node_port": 30080}, STACK, "grafana.service.nodePort", 30091),
        (
            {"monitoring_admission_webhooks": True},
            STACK,
            "prometheusOperator.admissionWebhooks.enabled",
            False,
        ),
        (
            {"monitoring_exporter_memory": "2Gi"},
            "monitoring_exporter_values",
            "resources.limits.memory",
            "1Gi",
        ),
        (RUNTIME, "device_plugin_values", "runtimeClassName", None),
        (RUNTIME, "monitoring_exporter_values", "runtimeClassName", "runc"),
        ({"device_plugin_mig_strategy": "mixed"}, "device_plugin_values", "migStrategy", "single"),
        (
            {"monitoring_scrape": "service-monitor"},
            "monitoring_exporter_values",
            "serviceMonitor.enabled",
            False,
        ),
        (SLICING, "device_plugin_values", "config.name", "mine"),
        (SLICING, "device_plugin_values", "config.default", "mine"),
        (
            {**SLICING, "cluster_stack": "gpu-operator"},
            "gpu_operator_values",
            "devicePlugin.config.name",
            "mine",
        ),
    ],
)
def test_values_against_a_setting_are_a_blocker(
    settings: dict[str, Any], key: str, path: str, value: Any
) -> None:
    plan = stack(**settings, **{key: with_value({}, path, value)})
    (found,) = [each for each in plan.blockers if each.code == "GF808"]
    assert path in found.message
    assert key in found.message
    assert next(name for name in settings if name != "cluster_stack") in found.message
    without = stack(**{key: with_value({}, path, value)})
    assert not [each for each in without.blockers if each.code == "GF808"]


@pytest.mark.parametrize(
    ("key", "path", "value", "named"),
    [
        (STACK, "prometheus.enabled", False, "no Prometheus"),
        (STACK, "prometheus.agentMode", True, "an agent"),
        (STACK, "kubeStateMetrics.enabled", False, "GpuCountDiffers"),
        ("monitoring_exporter_values", "serviceMonitor.enabled", False, "no ServiceMonitor"),
        (STACK, "kube-state-metrics.metricLabelsAllowlist", None, "GpuDaemonSetEmpty"),
        (STACK, "kube-state-metrics.collectors", ["nodes", "pods"], "without daemonsets"),
        (STACK, "kube-state-metrics.collectorsExclude", ["nodes"], "GpuCountDiffers"),
        (
            STACK,
            "kube-state-metrics.extraArgs",
            ["--metric-labels-allowlist=pods=[*]"],
            "GpuCountDiffers",
        ),
        (STACK, "kube-state-metrics.prometheus.monitor.enabled", False, "GpuCountDiffers"),
        (STACK, f"{SIDECAR}.enabled", False, "the dashboards"),
        (STACK, f"{SIDECAR}.searchNamespace", "grafana", "namespace, monitoring"),
        (STACK, f"{SIDECAR}.resource", "secret", "ConfigMaps"),
        ("monitoring_exporter_values", "service.enable", False, "without a Service"),
        ("monitoring_exporter_values", "tlsServerConfig.enabled", True, "by HTTP"),
        ("monitoring_exporter_values", "basicAuth.users", {"prom": "x"}, "without a password"),
        (STACK, "prometheusOperator.enabled", False, "no other one"),
        ("device_plugin_nfd_values", f"{NFD_PCI}.deviceLabelFields", ["device"], "by vendor"),
        ("device_plugin_nfd_values", f"{NFD_PCI}.deviceClassWhitelist", ["02"], "label nodes"),
        (STACK, "grafana.adminPassword", "prom-operator", "everybody"),
    ],
)
def test_values_against_a_default_are_a_warning(
    key: str, path: str, value: Any, named: str
) -> None:
    plan = stack(**{key: with_value({}, path, value)})
    found = [each for each in plan.findings if each.code == "GF808"]
    assert [each for each in found if path in each.message and named in each.message]
    assert plan.blockers == ()


def test_values_of_optional_releases_are_compared_too() -> None:
    plan = stack(monitoring_node_problems=True, monitoring_node_problems_values={"env": None})
    assert codes(plan) == {"GF808"}
    url = {"prometheus": {"url": "http://prometheus.default.svc", "port": 9090}}
    plan = stack(monitoring_autoscaling=True, monitoring_adapter_values=url)
    assert [each.code for each in plan.findings] == ["GF808"]
    assert plan.blockers == ()


@pytest.mark.parametrize(
    ("key", "path", "value"),
    [
        (STACK, "prometheus.enabled", True),
        (STACK, f"{JOBS}Secret", {}),
        (STACK, JOBS, {}),
        (STACK, f"{SPEC}.ruleNamespaceSelector", {}),
        (STACK, f"{SPEC}.ruleNamespaceSelector", OURS_TOO),
        (STACK, "alertmanager.alertmanagerSpec.useExistingSecret", False),
        ("device_plugin_values", "config", {"name": "", "map": {}, "default": ""}),
        ("monitoring_exporter_values", "runtimeClassName", ""),
        (STACK, "kube-state-metrics.collectors", ["nodes", "pods", "daemonsets", "leases"]),
        (STACK, "alertmanager.config", {"receivers": [{"name": "null"}], "route": {}}),
        (STACK, "alertmanager.alertmanagerSpec.alertmanagerConfiguration", {}),
        (STACK, "alertmanager.stringConfig", ""),
        (STACK, f"{SIDECAR}.searchNamespace", "ALL"),
        (STACK, f"{SIDECAR}.searchNamespace", ["grafana", "monitoring"]),
        (STACK, f"{SIDECAR}.searchNamespace", "grafana, monitoring"),
        (STACK, "prometheus.service.type", "LoadBalancer"),
        ("device_plugin_values", "config.name", ""),
        (STACK, "kube-state-metrics.extraArgs", ["--resources=nodes"]),
        ("device_plugin_nfd_values", f"{NFD_PCI}.deviceClassWhitelist", ["02", "03"]),
        ("device_plugin_nfd_values", f"{NFD_PCI}.deviceLabelFields", ["class", "vendor"]),
        ("device_plugin_nfd_values", "worker.config", None),  # as in a copied file
    ],
)
def test_values_that_change_nothing_are_no_finding(key: str, path: str, value: Any) -> None:
    plan = stack(**SCRAPE, **RECEIVERS, **SLICING, **RUNTIME, **{key: with_value({}, path, value)})
    assert codes(plan) == set()


def test_dashboards_of_another_grafana_need_no_sidecar_of_ours() -> None:
    off = with_value({}, "grafana.enabled", False)
    plan = stack(monitoring_dashboards=True, monitoring_values=off)
    assert plan.dashboards.objects
    assert codes(plan) == set()


def test_what_is_relied_on_is_what_gpufleet_sets() -> None:
    """Without values of the user no reliance is broken: gpufleet sets all that they require."""
    everything = {
        **SCRAPE, **RECEIVERS, **SLICING, "monitoring_autoscaling": True,
        "monitoring_node_problems": True, "monitoring_node_port": 30090,
        "monitoring_grafana_node_port": 30080, "monitoring_grafana_existing_secret": "mine",
        "monitoring_prometheus_url": "http://p:9090",
    }  # fmt: skip
    for kind in ("device-plugin", "gpu-operator"):
        assert "GF808" not in codes(stack(**everything, cluster_stack=kind))


def test_every_chart_of_a_reliance_has_a_key_for_its_values() -> None:
    for part in load_reliances().parts.values():
        assert {one.chart for one in part.relies} <= set(CATALOG.charts)


def test_labels_of_the_monitor_in_values_are_compared_with_what_prometheus_selects() -> None:
    theirs = {"serviceMonitor": {"additionalLabels": {"release": "other"}}}
    selector = {"prometheusSpec": {"serviceMonitorSelector": {"matchLabels": {"release": "x"}}}}
    data: dict[str, Any] = {"monitoring_values": {"prometheus": selector}}
    assert codes(stack(**data)) == set()
    plan = stack(**data, monitoring_exporter_values=theirs)
    assert values(plan, "dcgm-exporter")["serviceMonitor"]["additionalLabels"] == {
        "release": "other"
    }
    assert codes(plan) == {"GF876"}


@pytest.mark.parametrize(
    ("settings", "key", "chart", "path"),
    [
        ({}, "device_plugin_values", "nvidia-device-plugin", "tolerations"),
        ({}, "device_plugin_nfd_values", "node-feature-discovery", "worker.tolerations"),
        ({}, "monitoring_exporter_values", "dcgm-exporter", "tolerations"),
        (
            {"monitoring_node_problems": True},
            "monitoring_node_problems_values",
            "node-problem-detector",
            "tolerations",
        ),
        (
            {"cluster_stack": "gpu-operator"},
            "gpu_operator_values",
            "gpu-operator",
            "daemonsets.tolerations",
        ),
        (
            {"cluster_stack": "gpu-operator"},
            "gpu_operator_values",
            "gpu-operator",
            "node-feature-discovery.worker.tolerations",
        ),
    ],
)
def test_tolerations_of_a_user_are_added(
    settings: dict[str, Any], key: str, chart: str, path: str
) -> None:
    more = {"key": "team", "operator": "Exists"}
    ours = value_at(values(stack(**settings), chart), path)
    both = values(stack(**settings, **{key: with_value({}, path, [more])}), chart)
    assert ours
    assert value_at(both, path) == [*ours, more]
