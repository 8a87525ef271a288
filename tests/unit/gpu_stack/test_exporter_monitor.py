"""The ServiceMonitor of an exporter whose chart's has no relabelings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.gpu_stack.gpu_clusters import (
    FACTS,
    OLD,
    exporter_monitor,
    prometheus,
    stack,
    values,
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


def test_our_monitor_has_the_users_values_and_the_labels_that_a_prometheus_selects() -> None:
    theirs = {
        "serviceMonitor": {"interval": "60s", "additionalLabels": {"team": "gpu"}},
        "namespaceOverride": "gpus",
    }
    old = replace(prometheus({"matchLabels": {"release": "main"}}), server=OLD.server)
    [monitor] = exporter_monitor(stack(old, monitoring_exporter_values=theirs)).objects
    assert monitor["metadata"]["labels"] == {"release": "main", "team": "gpu"}
    assert monitor["spec"]["endpoints"][0]["interval"] == "60s"
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["gpus"]}


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


def test_there_is_none_without_our_exporter() -> None:
    assert stack(OLD, monitoring_exporter=False).exporter_monitor is None
    assert stack(OLD, cluster_stack="gpu-operator").exporter_monitor is None
