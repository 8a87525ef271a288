"""Rules of prometheus-adapter, autoscalers' manifests, and the release of the adapter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from gpufleet.gpu_stack.model import StackPlan
from gpufleet.gpu_stack.plan import plan_stack
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.helm.chart_choice import load_charts
from gpufleet.kube.facts import (
    ApiService,
    ClusterFacts,
    HelmRelease,
    ObjectRef,
    PrometheusInstance,
    ReleaseRef,
    ServerVersion,
)
from gpufleet.kube.helm_releases import OWNER_LABEL
from gpufleet.monitoring.adapter import ADAPTER
from gpufleet.monitoring.autoscalers import (
    Scaling,
    hpa_version,
    render_hpa,
    scaled_object,
)
from gpufleet.monitoring.autoscaling_models import load_autoscaling
from gpufleet.monitoring.autoscaling_rules import custom_rules, external_rules

CATALOG = load_autoscaling()
FACTS = ClusterFacts("test", ServerVersion(1, 36, "v1.36.3"))
OLD = replace(FACTS, server=ServerVersion(1, 18, "v1.18.19"))
CUSTOM, EXTERNAL = "v1beta1.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"
ALIBABA = [
    "duty_cycle_current",
    "memory_used_bytes_current",
    "temperature_celsius_current",
    "power_usage_milliwatts_current",
]


def plan(facts: ClusterFacts = FACTS, **data: Any) -> StackPlan:
    settings, problems = load_cluster_settings({"monitoring_autoscaling": True, **data})
    assert settings, problems
    return plan_stack(settings, facts, load_charts())


def adapter(found: StackPlan) -> dict[str, Any]:
    """The values of the adapter's release."""
    return dict(next(one for one in found.releases if one.chart == ADAPTER).values)


def has_adapter(found: StackPlan) -> bool:
    return any(release.chart == ADAPTER for release in found.releases)


def codes(found: StackPlan) -> set[str]:
    return {finding.code for finding in found.findings}


def offered(name: str, namespace: str, release: str = "") -> dict[str, ApiService]:
    ref = ObjectRef("Service", namespace, "metrics")
    return {name: ApiService(name, ref, ReleaseRef(namespace, release) if release else None)}


def test_alibabas_names_and_plain_ones_are_offered() -> None:
    names = [rule["name"]["as"] for rule in custom_rules(CATALOG)]
    assert set(ALIBABA) < set(names)
    assert {"gpu_utilization_percent", "gpu_memory_used_bytes"} < set(names)
    assert {rule["name"]["as"] for rule in external_rules(CATALOG)} == set(names)


def test_the_rule_for_renamed_labels_comes_last() -> None:
    """The adapter takes the last rule that has series, and unused GPUs have the exporter's pod."""
    for name in ALIBABA:
        labels = [
            sorted(rule["resources"]["overrides"])
            for rule in custom_rules(CATALOG)
            if rule["name"]["as"] == name
        ]
        assert labels[-1] == ["exported_namespace", "exported_pod"]
        assert ["namespace", "pod"] in labels[:-1]


def test_units_and_several_gpus_of_a_pod() -> None:
    queries = {rule["name"]["as"]: rule["metricsQuery"] for rule in custom_rules(CATALOG)}
    each = (
        "max by (<<.GroupBy>>, UUID, GPU_I_ID) ({}{{<<.LabelMatchers>>}})"  # scraped once or more
    )

    def over(how: str, field: str) -> str:
        return f"{how}({each.format(field)}) by (<<.GroupBy>>)"

    used = over("sum", "DCGM_FI_DEV_FB_USED")
    assert queries["memory_used_bytes_current"] == f"{used} * 1048576"
    assert f"{over('sum', 'DCGM_FI_DEV_POWER_USAGE')} * 1000" in queries[ALIBABA[3]]
    assert queries[ALIBABA[2]].startswith(over("max", "DCGM_FI_DEV_GPU_TEMP"))
    assert f"{over('avg', 'DCGM_FI_PROF_GR_ENGINE_ACTIVE')} * 100" in queries[ALIBABA[0]]


def test_a_gpu_that_pods_of_a_namespace_share_counts_once() -> None:
    queries = {rule["name"]["as"]: rule["metricsQuery"] for rule in external_rules(CATALOG)}
    each = "max by (UUID, GPU_I_ID) (DCGM_FI_DEV_FB_USED{<<.LabelMatchers>>})"
    assert queries["memory_used_bytes_current"] == f"sum({each}) * 1048576"


def test_without_the_setting_there_is_no_adapter() -> None:
    assert not has_adapter(plan(monitoring_autoscaling=False))
    assert not has_adapter(plan(monitoring_enabled=False))


def test_the_adapter_asks_the_prometheus_that_is_installed() -> None:
    values = adapter(plan(monitoring_namespace="watch"))
    url = "http://prometheus-operated.watch.svc:9090"
    assert values["prometheus"] == {"url": url, "port": 0}
    assert values["rules"]["default"] is False
    assert values["rules"]["custom"] == custom_rules(CATALOG)


def test_the_adapter_asks_the_prometheus_that_is_joined() -> None:
    there = PrometheusInstance("theirs", "main", {"serviceMonitorSelector": {}})
    found = plan(replace(FACTS, prometheuses=(there,)), monitoring_prometheus="existing")
    assert adapter(found)["prometheus"]["url"] == "http://prometheus-operated.theirs.svc:9090"


@pytest.mark.parametrize(
    ("theirs", "url"),
    [
        ({"fullnameOverride": "prometheus"}, "http://prometheus-operated.monitoring.svc:9090"),
        ({"nameOverride": "kps"}, "http://prometheus-operated.monitoring.svc:9090"),
        ({"namespaceOverride": "metrics"}, "http://prometheus-operated.metrics.svc:9090"),
        (
            {"prometheus": {"service": {"port": 80}}},
            "http://prometheus-operated.monitoring.svc:9090",
        ),
        (
            {"prometheus": {"prometheusSpec": {"routePrefix": "/prom/", "web": {"tlsConfig": {}}}}},
            "https://prometheus-operated.monitoring.svc:9090/prom",
        ),
        (
            {"prometheus": {"prometheusSpec": {"serviceName": "governing"}}},
            "http://governing.monitoring.svc:9090",
        ),
    ],
)
def test_the_address_follows_the_values_of_the_chart(theirs: dict[str, Any], url: str) -> None:
    found = plan(monitoring_values=theirs)
    assert adapter(found)["prometheus"]["url"] == url
    assert not found.blockers


@pytest.mark.parametrize(
    ("theirs", "key"),
    [
        ({"prometheus": {"enabled": False}}, "prometheus.enabled"),
        ({"prometheus": {"agentMode": True}}, "prometheus.agentMode"),
        (
            {"prometheus": {"prometheusSpec": {"listenLocal": True}}},
            "prometheus.prometheusSpec.listenLocal",
        ),
    ],
)
def test_a_chart_without_a_prometheus_to_query_is_a_blocker(
    theirs: dict[str, Any], key: str
) -> None:
    (blocker,) = plan(monitoring_values=theirs).blockers
    assert blocker.message.startswith(f"{key} in monitoring_values is ")
    assert "monitoring_autoscaling" in blocker.message
    url = "http://thanos.example:9090"
    assert not plan(monitoring_values=theirs, monitoring_prometheus_url=url).blockers
    own = {"prometheus": {"url": url}}
    assert not plan(monitoring_values=theirs, monitoring_adapter_values=own).blockers


def test_the_address_of_an_existing_one_follows_its_object() -> None:
    spec = {"routePrefix": "/prometheus", "web": {"tlsConfig": {"cert": {}}}}
    there = PrometheusInstance("theirs", "main", {"serviceMonitorSelector": {}, **spec})
    found = plan(replace(FACTS, prometheuses=(there,)))
    url = "https://prometheus-operated.theirs.svc:9090/prometheus"
    assert adapter(found)["prometheus"]["url"] == url
    local = replace(there, spec={"listenLocal": True})
    assert "GF892" in codes(plan(replace(FACTS, prometheuses=(local,))))


def test_an_address_in_the_values_of_the_adapter_is_theirs_alone() -> None:
    theirs = {"prometheus": {"url": "http://thanos.example"}}
    found = plan(monitoring_prometheus="none", monitoring_adapter_values=theirs)
    assert not found.blockers
    assert adapter(found)["prometheus"] == theirs["prometheus"]  # the chart's port is 9090
    both = plan(monitoring_prometheus_url="http://other:9090", monitoring_adapter_values=theirs)
    assert [each.code for each in both.blockers] == ["GF808"]


@pytest.mark.parametrize("more", [{}, {"port": 9090}])
def test_a_url_with_a_port_gets_no_second_one(more: dict[str, int]) -> None:
    """The chart renders URL:PORT: https://github.com/kubernetes-sigs/prometheus-adapter/issues/173
    (read 2026-11-27)."""
    url = {"url": "http://prometheus.other.svc:9090", **more}
    found = plan(monitoring_adapter_values={"prometheus": url})
    assert adapter(found)["prometheus"] == {**url, "port": 0}


def test_rules_of_their_own_stay_beside_those_for_gpus() -> None:
    rule = {"seriesQuery": "requests", "name": {"as": "requests"}, "metricsQuery": "sum(requests)"}
    mine = {"seriesQuery": "util", "name": {"as": ALIBABA[0]}, "metricsQuery": "max(util)"}
    found = adapter(plan(monitoring_adapter_values={"rules": {"custom": [rule, mine]}}))
    names = [each["name"]["as"] for each in found["rules"]["custom"]]
    assert names[-2:] == ["requests", ALIBABA[0]]
    assert names.count(ALIBABA[0]) == 1  # theirs takes precedence
    assert set(names) > set(ALIBABA)
    lost = plan(monitoring_adapter_values={"rules": {"existing": "rules-of-mine"}})
    assert [each.code for each in lost.findings] == ["GF873", "GF808"]


def test_without_a_prometheus_its_url_is_asked_for() -> None:
    found = plan(monitoring_prometheus="none")
    assert "GF892" in {finding.code for finding in found.blockers}
    url = "https://prometheus.example/prom"
    named = plan(monitoring_prometheus="none", monitoring_prometheus_url=url)
    assert adapter(named)["prometheus"]["url"] == url


@pytest.mark.parametrize("release", ["", "cloud-metrics-adapter"])
def test_an_api_that_is_already_served_is_not_changed(release: str) -> None:
    found = plan(replace(FACTS, api_services=offered(CUSTOM, "kube-system", release)))
    assert not has_adapter(found)
    assert not found.blockers
    [finding] = [finding for finding in found.findings if finding.code == "GF890"]
    assert "Service kube-system/metrics" in finding.message


def test_another_version_of_the_api_counts_too() -> None:
    api = offered("v1beta2.custom.metrics.k8s.io", "kube-system")
    assert "GF890" in codes(plan(replace(FACTS, api_services=api)))


def test_our_own_api_is_no_obstacle() -> None:
    ours = HelmRelease(
        ADAPTER, "monitoring", 1, "deployed", ADAPTER, "5.3.0", "", {}, labels={OWNER_LABEL: "me"}
    )  # fmt: skip
    there = offered(CUSTOM, "monitoring", ADAPTER)
    found = plan(replace(FACTS, api_services=there, releases=(ours,)))
    assert has_adapter(found)
    assert "GF890" not in codes(found)


def test_beside_keda_there_are_no_external_rules() -> None:
    found = plan(replace(FACTS, api_services=offered(EXTERNAL, "keda")))
    assert adapter(found)["rules"]["external"] == []
    assert adapter(found)["rules"]["custom"]
    assert "GF891" in codes(found)


def test_an_image_from_the_frozen_registry_is_replaced() -> None:
    assert adapter(plan(OLD))["image"]["repository"].startswith("registry.k8s.io/")
    assert "image" not in adapter(plan())


METRIC = CATALOG.metrics[0]
WANTED = Scaling("ml", "trainer", METRIC, "60", 6)


@pytest.mark.parametrize(
    ("served", "version"),
    [
        ({"autoscaling/v1", "autoscaling/v2"}, "autoscaling/v2"),
        ({"autoscaling/v2beta1", "autoscaling/v2beta2"}, "autoscaling/v2beta2"),
        ({"autoscaling/v1", "autoscaling/v2beta1"}, "autoscaling/v2beta1"),
        ({"autoscaling/v1"}, ""),
    ],
)
def test_the_newest_version_that_is_served(served: set[str], version: str) -> None:
    assert hpa_version(CATALOG, served) == version


def test_an_autoscaler_in_each_version() -> None:
    new = yaml.safe_load(render_hpa(CATALOG, WANTED, "autoscaling/v2", "1.36"))["spec"]
    [metric] = new["metrics"]
    target = {"type": "AverageValue", "averageValue": "60"}
    assert metric["pods"] == {"metric": {"name": "duty_cycle_current"}, "target": target}
    assert new["behavior"]["scaleDown"] == {"stabilizationWindowSeconds": 300}
    old = yaml.safe_load(render_hpa(CATALOG, WANTED, "autoscaling/v2beta1", "1.18"))["spec"]
    [metric] = old["metrics"]
    assert metric["pods"] == {"metricName": "duty_cycle_current", "targetAverageValue": "60"}
    assert "behavior" not in old
    assert "behavior" not in render_hpa(CATALOG, WANTED, "autoscaling/v2beta2", "1.17")


def test_a_scaled_object_asks_for_one_number() -> None:
    found = yaml.safe_load(scaled_object(CATALOG, WANTED, "http://prometheus:9090"))["spec"]
    [trigger] = found["triggers"]
    assert trigger["metadata"]["query"].startswith("sum(avg(max by (exported_pod, UUID")
    assert trigger["metadata"]["threshold"] == "60"
    assert trigger["metadata"]["ignoreNullValues"] == "false"


@pytest.mark.parametrize(
    ("text", "number"),
    [("60", 60), ("60Gi", 64424509440), ("1.5Gi", 1610612736), ("250k", 250000), ("1G", 10**9),
     ("500m", 0.5)],
)  # fmt: skip
def test_a_threshold_is_a_number(text: str, number: float) -> None:
    wanted = replace(WANTED, value=text)
    found = yaml.safe_load(scaled_object(CATALOG, wanted, "http://prometheus:9090"))["spec"]
    assert float(found["triggers"][0]["metadata"]["threshold"]) == number
