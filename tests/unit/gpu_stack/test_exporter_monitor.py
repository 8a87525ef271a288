"""The ServiceMonitor of an exporter whose chart's has no relabelings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpufleet.kube.facts import ClusterFacts, HelmRelease
from tests.unit.gpu_stack.gpu_clusters import (
    FACTS,
    OLD,
    OURS,
    codes,
    exporter_monitor,
    prometheus,
    stack,
    values,
)

pytestmark = pytest.mark.claim(
    "An exporter that reports its pod as the node gets a ServiceMonitor of ours.",
    level=1,
)


def test_a_chart_without_relabelings_gets_a_monitor_of_ours_that_names_the_node() -> None:
    plan = stack(OLD)
    found = exporter_monitor(plan)
    [monitor] = found.objects
    assert (found.namespace, monitor["kind"]) == ("monitoring", "ServiceMonitor")
    assert "dcgm-exporter" in monitor["metadata"]["name"], "by which gpufleet verify finds it"
    assert monitor["spec"]["selector"] == {
        "matchLabels": {"app.kubernetes.io/instance": "dcgm-exporter"}
    }
    [endpoint] = monitor["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["interval"]) == ("metrics", "15s")
    [relabeling] = endpoint["relabelings"]
    assert relabeling["targetLabel"] == "node"
    chart = values(plan, "dcgm-exporter")["serviceMonitor"]
    assert chart["enabled"] is False, "two monitors would count every GPU twice"
    assert "relabelings" not in chart


def test_a_chart_with_relabelings_keeps_its_monitor() -> None:
    plan = stack(FACTS)
    assert exporter_monitor(plan).objects == (), "one of an earlier version is deleted"
    chart = values(plan, "dcgm-exporter")["serviceMonitor"]
    assert chart["enabled"]
    assert chart["relabelings"]


def selecting(selector: dict[str, Any] | None) -> ClusterFacts:
    """A cluster of 1.18 with a Prometheus that selects monitors with this selector."""
    return replace(prometheus(selector), server=OLD.server)


def test_our_monitor_has_the_users_values_and_the_labels_that_a_prometheus_selects() -> None:
    theirs = {
        "serviceMonitor": {
            "interval": "60s",
            "additionalLabels": {"team": "gpu", "release": "theirs"},
        },
        "namespaceOverride": "gpus",
    }
    plan = stack(selecting({"matchLabels": {"release": "main"}}), monitoring_exporter_values=theirs)
    [monitor] = exporter_monitor(plan).objects
    assert monitor["metadata"]["labels"] == {"release": "main", "team": "gpu"}
    assert monitor["spec"]["endpoints"][0]["interval"] == "60s"
    assert "GF876" not in codes(plan)
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["gpus"]}


@pytest.mark.parametrize(
    ("expression", "labels"),
    [
        ({"key": "team", "operator": "In", "values": ["gpu", "ml"]}, {"team": "gpu"}),
        ({"key": "team", "operator": "Exists"}, {"team": "true"}),
        ({"key": "team", "operator": "NotIn", "values": ["web"]}, {}),
        ({"key": "team", "operator": "DoesNotExist"}, {}),
    ],
)
def test_our_monitor_has_labels_that_fit_an_expression(
    expression: dict[str, Any], labels: dict[str, str]
) -> None:
    plan = stack(selecting({"matchExpressions": [expression]}))
    [monitor] = exporter_monitor(plan).objects
    assert monitor["metadata"]["labels"] == labels
    assert "GF876" not in codes(plan)
    against = {"team": "web"} if expression["operator"] != "Exists" else {"other": "x"}
    assert "GF876" in codes(
        stack(selecting({"matchExpressions": [expression]}), monitoring_monitor_labels=against)
    )


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        ({}, {}),
        ({"serviceMonitorSelector": {"matchLabels": {"team": "gpu"}}}, {"team": "gpu"}),
        (
            {"serviceMonitorSelectorNilUsesHelmValues": True},
            {"release": "kube-prometheus-stack"},
        ),
    ],
)
def test_our_monitor_has_the_labels_that_the_prometheus_of_this_run_will_select(
    spec: dict[str, Any], labels: dict[str, str]
) -> None:
    theirs = {"prometheus": {"prometheusSpec": spec}}
    plan = stack(OLD, monitoring_values=theirs)
    assert exporter_monitor(plan).objects[0]["metadata"]["labels"] == labels
    chart = values(stack(monitoring_values=theirs), "dcgm-exporter")
    assert chart["serviceMonitor"]["additionalLabels"] == labels
    wrong = stack(OLD, monitoring_values=theirs, monitoring_monitor_labels={"x": "y"})
    assert ("GF876" in codes(wrong)) == bool(labels)


def test_a_selector_for_a_label_that_gpufleet_itself_sets_is_said() -> None:
    """The chart's monitor has this label. gpufleet's needs another value to identify it later."""
    selector = {"matchLabels": {"app.kubernetes.io/component": "dcgm-exporter"}}
    assert "GF876" in codes(stack(selecting(selector)))


@pytest.mark.parametrize(
    "settings",
    [
        {"monitoring_exporter_values": {"serviceMonitor": {"enabled": True}}},
        {"monitoring_exporter_values": {"serviceMonitor": {"enabled": False}}},
        {"monitoring_exporter_values": {"serviceMonitor": None}},
        {"monitoring_scrape": "scrape-config"},
        {"monitoring_prometheus": "none"},
    ],
)
def test_there_is_none_where_the_user_or_the_scrape_job_decides(settings: dict[str, Any]) -> None:
    plan = stack(OLD, **settings)
    assert exporter_monitor(plan).objects == ()
    chart = values(plan, "dcgm-exporter")["serviceMonitor"]
    if "monitoring_exporter_values" in settings:
        theirs = settings["monitoring_exporter_values"]["serviceMonitor"]
        assert theirs is chart is None or chart["enabled"] == theirs["enabled"]
    else:
        assert not chart["enabled"]
    assert "relabelings" not in (chart or {})


@pytest.mark.parametrize(
    "settings", [{"monitoring_exporter": False}, {"cluster_stack": "gpu-operator"}]
)
def test_it_goes_with_our_exporter(settings: dict[str, Any]) -> None:
    assert exporter_monitor(stack(OLD, **settings)).objects == ()
    release = HelmRelease(
        "dcgm-exporter",
        "monitoring",
        1,
        "deployed",
        "dcgm-exporter",
        "2.6.10",
        "",
        {},
        labels=OURS,
    )
    there = replace(OLD, releases=(release,))
    assert stack(there, **settings).exporter_monitor is None, "its pods still run"
