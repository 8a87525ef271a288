"""autoscaling.yaml: its names, fields and versions; and the commands that show them."""

from __future__ import annotations

import re

import pytest
import yaml
from click.testing import CliRunner

from gpufleet.cli import main
from gpufleet.monitoring.autoscalers import hpa_of
from gpufleet.monitoring.autoscaling_models import load_autoscaling
from gpufleet.monitoring.autoscaling_rules import custom_rules, external_rules

CATALOG = load_autoscaling()
BASE = ["catalog", "autoscaling"]


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, [*BASE, *words])
    return result.exit_code, result.output


def test_names_are_unique_and_fit_into_a_url() -> None:
    names = [metric.name for metric in CATALOG.metrics]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)


def test_every_metric_has_an_old_field_first() -> None:
    """Exporters below 4.9.0, which all choices are, have the old names."""
    for metric in CATALOG.metrics:
        assert re.search(r"_(UTIL|USED|TEMP|USAGE)$", metric.fields[0].field), metric.name


@pytest.mark.parametrize(
    ("minor", "version"),
    [
        ("1.16", "autoscaling/v2beta2"),
        ("1.22", "autoscaling/v2beta2"),
        ("1.23", "autoscaling/v2"),
        ("1.37", "autoscaling/v2"),
        ("1.11", "autoscaling/v2beta1"),
        ("1.7", ""),
    ],
)
def test_the_version_of_a_minor(minor: str, version: str) -> None:
    assert hpa_of(CATALOG, minor) == version


def test_rules_are_those_that_are_deployed() -> None:
    status, output = run("rules")
    assert status == 0
    assert yaml.safe_load(output) == {
        "rules": custom_rules(CATALOG),
        "externalRules": external_rules(CATALOG),
    }


def test_metrics_are_listed() -> None:
    status, output = run("metrics")
    assert status == 0
    assert all(metric.name in output for metric in CATALOG.metrics)


def test_an_autoscaler_for_a_cluster() -> None:
    status, output = run(
        "hpa",
        "--kubernetes",
        "v1.18.19",
        "--deployment",
        "web",
        "--namespace",
        "ml",
        "--max-replicas",
        "9",
    )
    found = yaml.safe_load(output)
    assert (status, found["apiVersion"]) == (0, "autoscaling/v2beta2")
    assert (found["metadata"]["namespace"], found["spec"]["maxReplicas"]) == ("ml", 9)


def test_a_scaled_object() -> None:
    status, output = run("scaled-object", "--prometheus", "http://p:9090", "--deployment", "web")
    assert status == 0
    assert yaml.safe_load(output)["spec"]["triggers"][0]["metadata"]["serverAddress"] == (
        "http://p:9090"
    )


@pytest.mark.parametrize("name", ["on", "null", "1e3", "08"])
def test_names_that_yaml_would_convert_stay_strings(name: str) -> None:
    for kind, *words in (("hpa", "--kubernetes", "1.36"), ("scaled-object", "--prometheus", "on")):
        status, output = run(kind, *words, "--deployment", name, "--namespace", name)
        assert status == 0, output
        found = yaml.safe_load(output)
        target = found["spec"]["scaleTargetRef"]["name"]
        assert [found["metadata"]["name"], found["metadata"]["namespace"], target] == [name] * 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--kubernetes", "1.30", "--metric", "duty_cycle"], "available: duty_cycle_current"),
        (["--kubernetes", "1.30", "--value", "much"], "60Gi"),
        (["--kubernetes", "latest"], "not a Kubernetes version"),
        (["--kubernetes", "1.7"], "has no HorizontalPodAutoscaler"),
    ],
)
def test_usage_errors(words: list[str], said: str) -> None:
    status, output = run("hpa", "--deployment", "web", *words)
    assert status == 2
    assert said in output
