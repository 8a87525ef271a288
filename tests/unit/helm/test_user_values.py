"""A user's values over those of gpufleet."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.core.merge import value_at, with_value
from gpufleet.helm.chart_choice import load_charts
from gpufleet.helm.user_values import combine_values

CHARTS = load_charts().charts
STACK, EXPORTER = CHARTS["kube-prometheus-stack"], CHARTS["dcgm-exporter"]
JOBS = "prometheus.prometheusSpec.additionalScrapeConfigs"
ALLOWED = "kube-state-metrics.metricLabelsAllowlist"
TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def both(chart: Any, path: str, ours: Any, theirs: Any) -> Any:
    return value_at(
        combine_values(chart, with_value({}, path, ours), with_value({}, path, theirs)), path
    )


def test_scrape_jobs_are_joined_by_name() -> None:
    ours, theirs = {"job_name": "gpu-metrics"}, {"job_name": "scheduler"}
    assert both(STACK, JOBS, [ours], [theirs]) == [ours, theirs]
    assert both(STACK, JOBS, [ours], []) == [ours]
    own = {"job_name": "gpu-metrics", "scrape_interval": "5s"}
    assert both(STACK, JOBS, [ours], [own]) == [own]


def test_a_text_with_a_list_is_joined() -> None:
    ours, text = {"job_name": "gpu-metrics"}, "# mine\n- job_name: '{{ .Release.Name }}'\n"
    assert both(STACK, JOBS, [ours], text) == [ours, {"job_name": "{{ .Release.Name }}"}]


@pytest.mark.parametrize(
    "theirs", [None, "{{- range .Values.mine }}\n- job_name: x", {"name": "x"}]
)
def test_a_value_that_is_no_list_replaces_ours(theirs: Any) -> None:
    assert both(STACK, JOBS, [{"job_name": "gpu-metrics"}], theirs) == theirs


@pytest.mark.parametrize(
    ("theirs", "result"),
    [
        (["pods=[*]"], ["nodes=[a,b]", "pods=[*]"]),
        (["nodes=[c]"], ["nodes=[a,b,c]"]),
        (["nodes=[*],pods=[x, y]"], ["nodes=[*]", "pods=[x,y]"]),
        ("nodes=[*]", ["nodes=[*]"]),
        (["*=[*]"], ["nodes=[a,b]", "*=[*]"]),
        (["{{ .Values.mine }}"], ["{{ .Values.mine }}", "nodes=[a,b]"]),
        ([], ["nodes=[a,b]"]),
    ],
)
def test_allow_lists_are_joined_by_resource(theirs: Any, result: list[str]) -> None:
    assert both(STACK, ALLOWED, ["nodes=[a,b]"], theirs) == result


def test_the_toleration_of_gpu_nodes_stays() -> None:
    more = {"key": "team", "operator": "Exists"}
    assert both(EXPORTER, "tolerations", [TAINT], []) == [TAINT]
    assert both(EXPORTER, "tolerations", [TAINT], [more]) == [TAINT, more]
    assert both(EXPORTER, "tolerations", [TAINT], [TAINT]) == [TAINT]
    assert both(EXPORTER, "tolerations", [TAINT], None) is None


def test_what_is_empty_does_not_replace_ours() -> None:
    ours = {"runtimeClassName": "nvidia", "service": {"type": "NodePort"}, "gfd": {"enabled": True}}
    copied = {
        "runtimeClassName": "",
        "service": {"type": "", "annotations": {}},
        "gfd": {},
        "x": "",
    }
    merged = {**ours, "service": {"type": "NodePort", "annotations": {}}, "x": ""}
    assert combine_values(EXPORTER, ours, copied) == merged
    assert combine_values(EXPORTER, ours, {"runtimeClassName": None, "gfd": False}) == {
        **ours, "runtimeClassName": None, "gfd": False,
    }  # fmt: skip


def test_defaults_of_a_copied_file_do_not_replace_ours() -> None:
    ours = {"devicePlugin": {"config": {"create": True, "name": "ours", "default": "shared"}}}
    copied = {"devicePlugin": {"config": {"create": False, "name": "", "default": "", "data": {}}}}
    (config,) = combine_values(CHARTS["gpu-operator"], ours, copied)["devicePlugin"].values()
    assert config == {"create": True, "name": "ours", "default": "shared", "data": {}}
    theirs = {"devicePlugin": {"config": {"name": "theirs", "default": "any"}}}
    assert combine_values(CHARTS["gpu-operator"], ours, theirs) == theirs


def test_ours_give_way_to_the_same_said_otherwise() -> None:
    ours = {
        "prometheusOperator": {"admissionWebhooks": {"enabled": False}, "tls": {"enabled": False}}
    }
    theirs = {"prometheusOperator": {"admissionWebhooks": {"enabled": True}}}
    assert combine_values(STACK, ours, theirs) == theirs  # the webhooks need TLS
    off = {"prometheusOperator": {"admissionWebhooks": {"enabled": False}}}
    assert combine_values(STACK, ours, off) == ours
