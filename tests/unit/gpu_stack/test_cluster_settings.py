"""Settings of a cluster: defaults that load, and all mistakes reported at once."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.node.settings import load_node_settings


def problems(**data: object) -> list[str]:
    settings, found = load_cluster_settings(data)
    assert (settings is None) == bool(found)
    return [finding.message for finding in found]


def test_nothing_has_to_be_set() -> None:
    settings, found = load_cluster_settings({"ssh_user": "admin", "driver_branch": "580"})
    assert found == []
    assert settings
    assert settings.cluster.charts == "careful"
    assert settings.monitoring.node_port is None


def test_every_mistake_is_reported_at_once() -> None:
    found = problems(
        cluster_chart="newest",
        monitoring_node_port=99999,
        device_plugin_time_slicing=1,
        cluster_chart_versions={"dcgm-exporter": 3.1},
        gpu_operator_driver="sometimes",
    )
    assert len(found) == 5
    assert any("cluster_chart" in message for message in found)


def test_an_unknown_key_is_reported_with_the_nearest_one() -> None:
    settings, (finding,) = load_cluster_settings({"monitoring_node_prt": 30090})
    assert settings is None
    assert "monitoring_node_port" in finding.message + finding.remedy


def test_misspelt_keys_of_clusters_are_found_on_nodes_and_vice_versa() -> None:
    assert load_node_settings({"cluster_kubconfig": "x"})[1]
    assert problems(driver_brnch="580")
    assert load_node_settings({"cluster_kubeconfig": "x", "monitoring_node_port": 30090})[1] == []


def test_a_version_is_text_of_a_chart_that_exists() -> None:
    (message,) = problems(cluster_chart_versions={"dcgm-exporter": 3.1})
    assert "write versions in quotes" in message
    (message,) = problems(cluster_chart_versions={"dcgm": "3.1.5"})
    assert "known charts: kube-prometheus-stack" in message
    assert problems(cluster_chart_versions={"gpu-operator": "v23.9.2"}) == []


def test_where_charts_come_from() -> None:
    assert problems(cluster_chart_repository="https://charts.example.com/gpu/") == []
    assert problems(cluster_chart_repository="oci://registry.example.com:5000/charts") == []
    assert problems(cluster_chart_repository={"gpu-operator": "oci://registry.example.com/x"}) == []
    for wrong in ("charts.example.com", "oci://", "https://a b", "file:///charts", 7):
        assert len(problems(cluster_chart_repository=wrong)) == 1, wrong
    (message,) = problems(cluster_chart_repository={"dcgm": "oci://registry.example.com/x"})
    assert "known charts: kube-prometheus-stack" in message


def test_charts_without_tls_are_asked_for_explicitly() -> None:
    plain = "http://charts.example.com"
    for wanted in (plain, {"gpu-operator": plain}):
        (message,) = problems(cluster_chart_repository=wanted)
        assert plain in message
        assert "cluster_chart_plain_http" in message
        assert problems(cluster_chart_repository=wanted, cluster_chart_plain_http=True) == []


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    (message,) = problems(cluster_chart_repository="https://carrier:secret@charts.example.com")
    assert "cluster_chart_logins" in message
    assert "secret" not in message


def test_two_places_for_all_charts_contradict_each_other() -> None:
    repository = "https://charts.example.com"
    (message,) = problems(cluster_chart_dir="/charts", cluster_chart_repository=repository)
    assert "cluster_chart_dir" in message
    assert "cluster_chart_repository" in message
    single = {"gpu-operator": repository}
    assert problems(cluster_chart_dir="/charts", cluster_chart_repository=single) == []


@pytest.mark.parametrize(
    "key", ["monitoring_values", "gpu_operator_values", "device_plugin_values"]
)
@pytest.mark.parametrize("value", [date(2026, 11, 22), Path("/a"), {"hunter2"}, object()])
def test_values_of_a_chart_are_what_json_has(key: str, value: object) -> None:
    (found,) = problems(**{key: {"grafana": {"password": ["a", value]}}})
    kind = type(value).__name__
    assert f"has a value of type {kind} in grafana.password; allowed are text" in found
    assert "hunter2" not in found
    (found,) = problems(**{key: {"grafana": {b"a": 1}}})
    assert "has a key of type bytes in grafana; allowed are text" in found


def test_any_data_of_json_are_values() -> None:
    assert not problems(monitoring_values={"a": [{1: None, "b": (True, 1.5)}], "c": {2: {}}})


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"serviceMonitor": {"additionalLabels": "x"}}, "a mapping as serviceMonitor.additional"),
        ({"serviceMonitor": True}, "a mapping as serviceMonitor"),
        ({"image": "registry.example/exporter:1"}, "a mapping as image"),
        ({"arguments": "-f /mine.csv"}, "a list as arguments"),
        ({"customMetrics": ["DCGM_FI_DEV_GPU_UTIL"]}, "a text as customMetrics"),
        ({"namespaceOverride": 7}, "a text as namespaceOverride"),
        ({"extraEnv": {"NAME": "x"}}, "a list as extraEnv"),
        ({"extraVolumeMounts": ["/mine"]}, "a mapping as extraVolumeMounts[]"),
        ({"extraVolumeMounts": [None]}, "a mapping as extraVolumeMounts[]"),
        (
            {"extraConfigMapVolumes": [{"name": "x", "configMap": "x"}]},
            "a mapping as extraConfigMapVolumes[].configMap",
        ),
    ],
)
def test_values_of_the_exporter_have_the_kinds_that_its_chart_reads(
    values: dict[str, object], problem: str
) -> None:
    (message,) = problems(monitoring_exporter_values=values)
    assert message.startswith("monitoring_exporter_values = ")
    assert f" must have {problem}" in message
    assert problems(monitoring_exporter_values=dict.fromkeys(values)) == []


def test_lists_of_the_exporters_values_may_be_tuples() -> None:
    assert problems(monitoring_exporter_values={"arguments": ("-d", "g"), "extraEnv": ({},)}) == []
