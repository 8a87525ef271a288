"""Values: comparison, diff without secrets, check against the chart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufleet.helm.chart import ChartContent, Subchart
from gpufleet.helm.chart_values import (
    MAX_DIFF_LINES,
    same_values,
    shorten_diff,
    unknown_values,
    values_diff,
)

SECRET = "hunter2hunter2"
LEAVES = st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=5)
VALUES = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@given(VALUES)
def test_values_are_the_same_as_themselves(values: dict[str, Any]) -> None:
    assert same_values(values, dict(reversed(list(values.items()))))
    assert values_diff(values, values, "a", "b") == ()


@given(VALUES, VALUES)
def test_a_difference_is_a_diff(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert bool(values_diff(old, new, "a", "b")) == (not same_values(old, new))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(1, 1.0, True), (1, True, False), (0, False, False), ("1", 1, False), (None, "", False),
     ((1, 2), [1, 2], True), ({}, None, False), ([], {}, False)],
)  # fmt: skip
def test_what_counts_as_the_same(one: Any, other: Any, same: bool) -> None:
    assert same_values({"a": one}, {"a": other}) is same


@pytest.mark.parametrize(
    "values",
    [
        {"adminPassword": SECRET},
        {"grafana": {"adminPassword": SECRET}},
        {"api_key": SECRET},
        {"tls": {"privateKey": f"-----BEGIN\n{SECRET}\n-----END"}},
        {"credentials": {"user": SECRET, "list": [SECRET]}},
        {"env": [{"name": "DB_PASSWORD", "value": SECRET}]},
        {"config": f"[smtp]\npassword = {SECRET}\n"},
        {"url": f"https://user:{SECRET}@host/"},
        {"token": 12345678},
    ],
    ids=lambda values: next(iter(values)),
)
def test_secrets_are_not_shown(values: dict[str, Any]) -> None:
    for diff in (values_diff({}, values, "a", "b"), values_diff(values, {}, "a", "b")):
        text = "\n".join(diff)
        assert SECRET not in text
        assert "12345678" not in text
        assert "***" in text


def test_a_text_of_several_lines_is_shown_line_by_line() -> None:
    lines = values_diff({}, {"customMetrics": "a, gauge\nb, gauge\n"}, "a", "b")
    assert lines[-3:] == ("+customMetrics: |", "+  a, gauge", "+  b, gauge")


def test_a_secret_that_changes_is_seen_to_change() -> None:
    diff = values_diff({"password": "one"}, {"password": "two"}, "a", "b")
    assert diff[-2:] == ("-password: '***'", "+password: '*** (changed)'")


@pytest.mark.parametrize(
    "values",
    [{"existingSecret": "grafana-login"}, {"secretName": "tls"}, {"serviceAccountName": "x"},
     {"automountServiceAccountToken": True}, {"passwordKey": "password"}],
)  # fmt: skip
def test_references_are_shown(values: dict[str, Any]) -> None:
    assert "***" not in "\n".join(values_diff({}, values, "a", "b"))


GRAFANA = ChartContent("grafana", "1", "", {"adminUser": "admin", "ini": {}}, ())
CHART = ChartContent(
    "stack",
    "2",
    "",
    {"prometheus": {"spec": {"replicas": 1}}, "labels": {}, "list": [], "grafana": {"on": True}},
    (),
    (Subchart("grafana", ("grafana.on",), GRAFANA),),
)


@pytest.mark.parametrize(
    ("values", "key", "meant"),
    [
        (
            {"prometheus": {"spec": {"replica": 2}}},
            "prometheus.spec.replica",
            "prometheus.spec.replicas",
        ),
        ({"promtheus": {}}, "promtheus", "prometheus"),
        ({"grafana": {"adminUsr": "x"}}, "grafana.adminUsr", "grafana.adminUser"),
        ({"prometheus": {"replicas": 2}}, "prometheus.replicas", "prometheus.spec.replicas"),
        ({"adminUser": "x"}, "adminUser", "grafana.adminUser"),
    ],
)
def test_a_key_that_the_chart_does_not_know(values: dict[str, Any], key: str, meant: str) -> None:
    (found,) = unknown_values(values, CHART)
    assert f"{key} is not a value of chart" in found.message
    assert f"Did you mean {meant}?" in found.remedy


@pytest.mark.parametrize(
    "values",
    [{"stack": {"labels": {"a": 1}, "list": []}}, {"stack": {}}, {"our-stack": {"labels": {}}}],
)
def test_values_for_an_umbrella_chart(values: dict[str, Any]) -> None:
    (found,) = unknown_values(values, CHART)
    assert f"move what is below {next(iter(values))} one level up" in found.remedy


@pytest.mark.parametrize(
    "values",
    [{"zzz": 1}, {"labels": {"any": "thing"}}, {"list": [{"x": 1}]}, {"global": {"x": 1}},
     {"grafana": {"on": False, "ini": {"a": {"b": 1}}}}, {"prometheus": None}],
)  # fmt: skip
def test_keys_that_are_known_or_free(values: dict[str, Any]) -> None:
    assert unknown_values(values, CHART) == []


def test_a_long_diff_is_cut_and_says_how_much_follows() -> None:
    lines = [f"+{number}" for number in range(MAX_DIFF_LINES + 2)]
    assert shorten_diff(lines)[:-1] == tuple(lines[:MAX_DIFF_LINES])
    assert "and 2 lines more" in shorten_diff(lines)[-1]
    assert shorten_diff(lines[:MAX_DIFF_LINES]) == tuple(lines[:MAX_DIFF_LINES])
