"""The release of Node Problem Detector and the configuration of its monitor."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml
from click.testing import CliRunner

from gpufleet.cli import main
from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet.kube.facts import ClusterFacts
from gpufleet.monitoring.node_problems import (
    DETECTOR,
    SCRIPTS,
    load_node_problems,
    monitor_config,
    monitor_files,
)
from gpufleet.monitoring.xids import load_xids
from tests.unit.gpu_stack.gpu_clusters import FACTS, OLD, codes, names, stack, values, work

CATALOG = load_node_problems()


def test_it_is_installed_only_when_asked_for() -> None:
    assert DETECTOR not in names(stack())
    assert names(stack(monitoring_node_problems=True))[-1] == DETECTOR
    assert DETECTOR not in names(stack(monitoring_node_problems=True, monitoring_enabled=False))


@pytest.mark.parametrize(("facts", "version"), [(FACTS, "2.4.1"), (OLD, "2.3.21")])
def test_the_chart_fits_the_cluster_and_runs_on_every_gpu_node(
    facts: ClusterFacts, version: str
) -> None:
    plan = stack(facts, monitoring_node_problems=True)
    (release,) = (release for release in plan.releases if release.name == DETECTOR)
    assert release.version == version
    assert release.ready.nodes == {DETECTOR: ("gpu-1", "gpu-2")}
    assert release.source.location.startswith("oci://ghcr.io/deliveryhero/")


def test_a_version_with_a_field_of_newer_kubernetes_is_refused() -> None:
    chosen = choose_charts(load_charts(), "1.24", pins={DETECTOR: "2.3.22"})[DETECTOR]
    assert any(finding.blocks for finding in chosen.findings)
    assert "not installed anywhere" in choose_charts(load_charts(), "1.36")[DETECTOR].checked


def test_another_detector_is_left_alone() -> None:
    theirs = work("npd", "node-problem-detector", release="npd")
    plan = stack(replace(FACTS, workloads=(theirs,)), monitoring_node_problems=True)
    assert DETECTOR not in names(plan)
    assert "GF893" in codes(plan)


def test_the_monitor_that_is_named_is_among_the_files_with_every_script() -> None:
    settings = values(stack(monitoring_node_problems=True), DETECTOR)["settings"]
    files = settings["custom_monitor_definitions"]
    assert settings["custom_plugin_monitors"] == ["/custom-config/gpu-monitor.json"]
    assert json.loads(files["gpu-monitor.json"]) == monitor_config(CATALOG)
    scripts = {path.name: path.read_text() for path in SCRIPTS.iterdir()}
    assert {name: text for name, text in files.items() if name.endswith(".sh")} == scripts
    called = {rule["args"][0] for rule in monitor_config(CATALOG)["rules"]}
    assert called <= {f"/custom-config/{name}" for name in scripts}
    assert monitor_files(CATALOG) == files


def test_npd_would_take_the_configuration() -> None:
    """No rule that NPD would refuse at its start, or that would undo another rule."""
    config = monitor_config(CATALOG)
    kinds = [condition["type"] for condition in config["conditions"]]
    permanent = [rule["condition"] for rule in config["rules"] if rule["type"] == "permanent"]
    assert sorted(permanent) == sorted(set(kinds))  # a second rule would undo the first one's
    assert len({rule["reason"] for rule in config["rules"]}) == len(config["rules"])
    fine = {condition["reason"] for condition in config["conditions"]}
    assert not fine & {rule["reason"] for rule in config["rules"]}
    assert config["plugin"] == "custom"
    assert int(config["pluginConfig"]["timeout"][:-1]) < CATALOG.interval


def test_every_xid_is_a_condition_or_an_event_or_the_bus() -> None:
    codes = [str(code) for entry in load_xids().classes for code in entry.codes]
    asked = [
        rule["args"][2:]
        for rule in monitor_config(CATALOG)["rules"]
        if "gpu-xid" in rule["args"][0]
    ]
    only = [code for how, *listed in asked for code in listed if how == "only"]
    (others,) = (listed for how, *listed in asked if how == "except")
    assert sorted(others) == sorted(codes)
    bus = [str(code) for code in load_xids().codes("bus")]
    assert sorted([*only, *bus]) == sorted(codes)


def test_it_runs_where_the_gpus_are_and_sees_the_node_but_writes_nothing() -> None:
    given = values(stack(monitoring_node_problems=True), DETECTOR)
    (mount,) = given["extraVolumeMounts"]
    assert (mount["mountPath"], mount["readOnly"]) == (CATALOG.host, True)
    assert {"name": "HOST_ROOT", "value": CATALOG.host} in given["env"]
    terms = given["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    keys = {term["matchExpressions"][0]["key"] for term in terms["nodeSelectorTerms"]}
    assert keys == set(load_charts().gpu_labels.all)


def test_prometheus_reads_it_where_there_are_monitors() -> None:
    joined = values(stack(monitoring_node_problems=True), DETECTOR)
    assert joined["metrics"]["serviceMonitor"]["enabled"] is True
    alone = values(stack(monitoring_node_problems=True, monitoring_prometheus="none"), DETECTOR)
    assert "metrics" not in alone
    own = {"resources": {"limits": {"memory": "80Mi"}}}
    more = stack(monitoring_node_problems=True, monitoring_node_problems_values=own)
    assert values(more, DETECTOR)["resources"] == own["resources"]


def test_the_command_prints_them_for_a_detector_of_ones_own() -> None:
    done = CliRunner().invoke(main, ["catalog", "node-problems", "--namespace", "npd"])
    assert done.exit_code == 0, done.output
    printed = yaml.safe_load(done.output)
    assert (printed["kind"], printed["metadata"]["namespace"]) == ("ConfigMap", "npd")
    assert printed["data"] == monitor_files(CATALOG)
    assert f"--config.custom-plugin-monitor={CATALOG.folder}/{CATALOG.monitor}.json" in done.output
