"""The chart catalog against installations on real API servers."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpufleet.cli import main
from gpufleet.core.findings import Severity
from gpufleet.core.merge import merge_mappings
from gpufleet.core.versions import version_tuple
from gpufleet.helm.chart_choice import (
    ChartChoice,
    choose_charts,
    cluster_findings,
    kubernetes_minor,
    load_charts,
)

CATALOG = load_charts()
ROWS = list(csv.DictReader(Path(__file__).with_name("chart_installations.csv").open()))


def choice(chart: str, minor: str, policy: str = "careful", pin: str = "") -> ChartChoice:
    assert policy in ("careful", "newest")
    newest = policy == "newest"
    pins = {chart: pin} if pin else {}
    return choose_charts(CATALOG, minor, "newest" if newest else "careful", pins)[chart]


def blocked(found: ChartChoice) -> bool:
    return any(finding.severity is Severity.BLOCKER for finding in found.findings)


@pytest.mark.claim(
    "The chart catalog agrees with 251 installations on real API servers of fifteen minors.",
    level=1,
)
@pytest.mark.parametrize("chart", CATALOG.charts)
def test_the_catalog_agrees_with_every_installation(chart: str) -> None:
    rows = [row for row in ROWS if row["chart"] == chart]
    assert len(rows) > 10 or not (rows or CATALOG.charts[chart].installed)
    wrong = [
        row
        for row in rows
        if blocked(choice(chart, row["kubernetes"], pin=row["version"]))
        != (row["outcome"] == "refused")
    ]
    assert wrong == []


@pytest.mark.parametrize("minor", CATALOG.kubernetes)
def test_every_minor_has_a_version_of_every_chart_that_is_not_blocked(minor: str) -> None:
    for policy in ("careful", "newest"):
        for name in CATALOG.charts:
            found = choice(name, minor, policy)
            assert not blocked(found), found
            assert found.reason


def test_a_careful_choice_is_documented_by_upstream_up_to_1_36() -> None:
    outside = {
        (name, minor)
        for minor in CATALOG.kubernetes
        for name in CATALOG.charts
        if any(finding.code == "GF803" for finding in choice(name, minor).findings)
    }
    newer = {minor for minor in CATALOG.kubernetes if version_tuple(minor) > (1, 36)}
    assert outside == {("gpu-operator", minor) for minor in newer}


def test_checked_says_no_more_than_was_done() -> None:
    assert choice("dcgm-exporter", "1.18").checked == (
        "installed on an API server of 1.18: every object accepted, 3/3 simulated pods "
        "ran; images were not run"
    )
    assert choice("dcgm-exporter", "1.17").checked == (
        "inferred: not installed on 1.17; on 1.18 every object was accepted"
    )
    assert "not installed anywhere" in choice("dcgm-exporter", "1.36", pin="4.9.0").checked


@pytest.mark.claim("A chart version that cannot work is refused before any change.", level=1)
def test_an_incompatible_pin_is_a_blocker_with_the_reason() -> None:
    (finding,) = choice("dcgm-exporter", "1.18", pin="3.0.0").findings
    assert finding.code == "GF801"
    assert "kubeVersion: >= 1.19.0-0" in finding.message
    assert "2.6.10 is the newest that can" in finding.remedy
    assert choice("dcgm-exporter", "1.18", pin="3.1.5").checked == "known not to install on 1.18"
    (finding,) = choice("kube-prometheus-stack", "1.18", pin="46.2.0").findings
    assert "seccompProfile" in finding.message
    assert 'cluster_charts = "newest"' in finding.remedy


def test_a_pin_with_several_reasons_has_one_remedy() -> None:
    (finding,) = choice("dcgm-exporter", "1.18", pin="4.8.2").findings
    assert "kubeVersion" in finding.message
    assert "internalTrafficPolicy" in finding.message
    assert finding.remedy.startswith("2.6.10 is the newest that can")
    assert "cluster_charts" not in finding.remedy, "no values avoid the first reason"


def test_newest_passes_values_that_make_a_chart_fit() -> None:
    found = choice("dcgm-exporter", "1.19", "newest")
    assert found.version == "4.8.2"
    assert found.values == {
        "rollingUpdate": {"maxSurge": None},
        "service": {"internalTrafficPolicy": None},
    }
    assert {finding.code for finding in found.findings} == {"GF802"}
    assert choice("kube-prometheus-stack", "1.18", "newest").version == "46.2.0"
    assert choice("dcgm-exporter", "1.36", "newest").values == {}


def test_a_pin_is_spelt_as_in_the_index_and_a_newer_one_is_reported() -> None:
    assert choice("gpu-operator", "1.36", pin="26.7.0").version == "v26.7.0"
    (finding,) = choice("kube-prometheus-stack", "1.36", pin="92.15.0").findings
    assert finding.code == "GF803"


@pytest.mark.parametrize("version", ["1.24", "v1.24.17", "v1.24.17-eks-036c24b", "1.24.9-gke.100"])
def test_what_vendors_add_to_a_version_does_not_count(version: str) -> None:
    assert kubernetes_minor(version) == "1.24"
    assert choose_charts(CATALOG, version)["nvidia-device-plugin"].version == "0.20.0"


def test_a_version_outside_the_catalog_gets_the_nearest_choice_and_a_finding() -> None:
    today = date(2026, 11, 21)
    assert choose_charts(CATALOG, "1.40")["kube-prometheus-stack"].version == "88.5.3"
    assert choose_charts(CATALOG, "1.15")["kube-prometheus-stack"].version == "45.10.1"
    assert [f.code for f in cluster_findings(CATALOG, "1.40", today)] == ["GF805"]
    assert [f.code for f in cluster_findings(CATALOG, "1.18", today)] == ["GF806"]
    assert cluster_findings(CATALOG, "1.36", today) == []
    with pytest.raises(ValueError, match="not a Kubernetes version"):
        kubernetes_minor("latest")


def test_values_are_merged_as_helm_does() -> None:
    assert merge_mappings({"a": {"b": 1, "c": 2}, "l": [1]}, {"a": {"b": None}, "l": [2]}) == {
        "a": {"b": None, "c": 2},
        "l": [2],
    }


def test_the_command_prints_each_chart_with_its_reason() -> None:
    runner = CliRunner()
    done = runner.invoke(main, ["catalog", "charts", "--kubernetes", "1.18", "--json"])
    assert done.exit_code == 0
    data = json.loads(done.output)
    assert data["charts"]["dcgm-exporter"]["version"] == "2.6.10"
    assert set(data["charts"]["gpu-operator"]) >= {"version", "reason", "checked", "findings"}
    words = ["catalog", "charts", "--kubernetes", "1.18", "--chart", "dcgm-exporter"]
    done = runner.invoke(main, [*words, "--pin", "dcgm-exporter=3.1.5"])
    assert done.exit_code == 1
    assert "GF801" in done.output
    assert runner.invoke(main, [*words, "--pin", "dcgm=3"]).exit_code == 2
    assert runner.invoke(main, ["catalog", "charts", "--kubernetes", "new"]).exit_code == 2
