"""The files of rules, runbook pages and objects that are made from the catalog's alerts."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import dashboards
from gpufleet.doctor.hardware import judge_gpu_health, load_hardware
from gpufleet.doctor.table import all_checks
from gpufleet.facts.health import HostHealth, KernelEvent
from gpufleet.kube.facts import ClusterFacts, Crd, PrometheusInstance
from gpufleet.monitoring.alert_models import Alert, load_alerts
from gpufleet.monitoring.alert_rules import rule_groups
from gpufleet.monitoring.alerting import RULE_CRD
from gpufleet.monitoring.alertmanager import (
    NOBODY_RECEIVER,
    alertmanager_config,
    parse_receivers,
)
from gpufleet.monitoring.xids import load_xids
from tests.unit.gpu_stack.gpu_clusters import FACTS, MONITOR, OLD, codes, stack, work

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs/runbooks"
CATALOG = load_alerts()
SECTIONS = ["What it means", "What to look at", "What to do", "When to replace"]


def test_the_files_are_those_that_make_alerts_writes() -> None:
    command = [sys.executable, ROOT / "scripts/generate_alerts.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_page_and_no_page_is_left_over() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {a.name for a in CATALOG.alerts}


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_says_what_it_means_and_what_to_do(page: Path) -> None:
    title, *parts = re.split(r"^#+ ", page.read_text(), flags=re.M)[1:]
    assert title.strip() == page.stem
    found = [part.split("\n", 1) for part in parts]
    assert [heading for heading, _ in found] == SECTIONS
    assert all(text.strip() for _, text in found)
    named = set(re.findall(r"\bGpu[A-Z][A-Za-z]+", page.read_text()))
    assert named <= {alert.name for alert in CATALOG.alerts}


def test_who_is_meant_is_named() -> None:
    for rule in rule_groups(CATALOG)[0]["rules"]:
        if "alert" not in rule:
            continue
        said = rule["annotations"]
        by_gpu = "$labels.gpu }}" in said["summary"]
        assert by_gpu or "$labels." in said["summary"] or rule["alert"] == "GpuDriverVersionsDiffer"
        if by_gpu:
            assert "$labels.UUID" in said["summary"]
            assert "$labels.node" in said["summary"]
        assert "[[" not in str(rule)


def rules(facts: ClusterFacts = FACTS, **settings: Any) -> tuple[Any, ...]:
    return stack(facts, **settings).alerts.objects


def test_rules_come_with_our_prometheus_and_where_an_operator_is() -> None:
    [rule] = rules()
    assert rule["kind"] == "PrometheusRule"
    assert rule["metadata"]["namespace"] == "monitoring"
    assert rules(monitoring_alerts=False) == ()
    assert rules(monitoring_enabled=False) == ()
    assert rules(monitoring_prometheus="none") == ()
    there = replace(FACTS, crds={RULE_CRD: Crd(RULE_CRD, "PrometheusRule", ("v1",), {})})
    assert len(rules(there, monitoring_prometheus="none")) == 1


@pytest.mark.parametrize(
    ("image", "count"),
    [("quay.io/prometheus-operator/prometheus-operator:v0.43.2", 0),
     ("quay.io/prometheus-operator/prometheus-operator:v0.68.0", 1),
     ("quay.io/prometheus-operator/prometheus-operator@sha256:0123", 1),
     ("quay.io/prometheus/prometheus:v2.20.1", 1)],  # not run by an operator
)  # fmt: skip
def test_an_old_operator_gets_no_rules_that_it_cannot_read(image: str, count: int) -> None:
    there = replace(
        FACTS,
        crds={RULE_CRD: Crd(RULE_CRD, "PrometheusRule", ("v1",), {})},
        workloads=(replace(work("operator", "x"), kind="Deployment", images=(image,)),),
    )
    assert len(rules(there, monitoring_prometheus="none")) == count
    assert ("GF894" in codes(stack(there, monitoring_prometheus="none"))) is (count == 0)


def test_rules_get_the_labels_that_a_prometheus_selects() -> None:
    def found(selector: dict[str, Any] | None, **settings: Any) -> tuple[dict[str, str], set[str]]:
        spec = {"serviceMonitorSelector": {}, "ruleSelector": selector}
        instance = PrometheusInstance("infra", "main", spec)
        crds = {name: Crd(name, "", ("v1",), {}) for name in (RULE_CRD, MONITOR)}
        facts = replace(FACTS, crds=crds, prometheuses=(instance,))
        plan = stack(facts, **settings)
        return plan.alerts.objects[0]["metadata"]["labels"], codes(plan)

    labels, problems = found({"matchLabels": {"release": "main"}})
    assert labels["release"] == "main"
    assert "GF896" not in problems
    _, problems = found(
        {"matchLabels": {"release": "main"}}, monitoring_rule_labels={"release": "other"}
    )
    assert "GF896" in problems
    assert "GF896" in found(None)[1]
    assert "GF896" not in found({})[1]


def test_alerts_that_never_fire_are_reported() -> None:
    assert "GF897" not in codes(stack())
    [silent] = [found for found in stack(OLD).findings if found.code == "GF897"]
    assert "GpuRowRemapPending (DCGM_FI_DEV_ROW_REMAP_PENDING)" in silent.message
    assert "GF897" not in codes(stack(OLD, monitoring_exporter=False))
    few = "DCGM_FI_DEV_GPU_UTIL, gauge, use"
    assert "GF897" in codes(stack(monitoring_counters=few))


@pytest.mark.parametrize("base", ["https://wiki.example.com/gpu", "https://wiki.example.com/gpu/"])
def test_links_to_runbooks_are_absolute_or_absent(base: str) -> None:
    def links(**settings: Any) -> set[str]:
        [written] = rules(**settings)
        alerts = [rule for rule in written["spec"]["groups"][0]["rules"] if "alert" in rule]
        return {rule["annotations"].get("runbook_url", "") for rule in alerts}

    assert links() == {""}
    found = links(monitoring_runbook_base=base)
    assert "https://wiki.example.com/gpu/GpuXidDriver.md" in found
    names = {link.removeprefix("https://wiki.example.com/gpu/") for link in found}
    assert names == {path.name for path in PAGES.glob("*.md")}


def test_receivers() -> None:
    receivers = parse_receivers("[{name: default}, {name: critical, webhook_configs: []}]")
    config = alertmanager_config(receivers)
    assert [one["name"] for one in config["receivers"]] == ["default", "critical", NOBODY_RECEIVER]
    assert yaml.safe_load(yaml.safe_dump(config)) == config


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "no YAML"),
        ("[{name: default, since: 2026-13-01}]", "no YAML"),
        ("{name: default}", "no list"),
        ("[{webhook_configs: []}]", "a name each"),
        ("[{name: default}, {name: default}]", "twice"),
        ("[{name: oncall, webhook_configs: [{url: 'https://secret'}]}]", "named default"),
    ],
)
def test_receivers_that_cannot_be_used(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        parse_receivers(text)
    assert "secret" not in str(error.value)


def test_alertmanager_is_ours_only_where_receivers_are_named() -> None:
    def spec(**settings: Any) -> Any:
        release = stack(**settings).releases[0]
        return release.values.get("alertmanager", {}).get("alertmanagerSpec")

    assert spec() is None
    named = spec(monitoring_alert_receivers="oncall")
    assert named == {"useExistingSecret": True, "configSecret": "gpufleet-alertmanager"}
    assert stack(monitoring_alert_receivers="oncall").receivers == ("monitoring", "oncall")
    assert stack().receivers is None


NAMES_CHECKS = pytest.mark.claim(
    "Alerts, runbooks and dashboards name the checks of `gpufleet doctor` that confirm them.",
    level=1,
)
CHECKS = {check.id for check in all_checks()}


@NAMES_CHECKS
@pytest.mark.parametrize("alert", CATALOG.alerts, ids=lambda alert: alert.name)
def test_the_checks_of_an_alert_are_there(alert: Alert) -> None:
    assert set(alert.doctor) <= CHECKS
    assert len(set(alert.doctor)) == len(alert.doctor)
    page = (PAGES / f"{alert.name}.md").read_text()
    named = {name for found in re.findall(r"--check (\S+)`", page) for name in found.split(",")}
    assert named == set(alert.doctor)


@NAMES_CHECKS
@pytest.mark.parametrize("name", [dashboard.name for dashboard in dashboards.ALL])
def test_panels_name_checks_that_are_there(name: str) -> None:
    text = (dashboards.FOLDER / f"{name}.json").read_text()
    named = {
        check for found in re.findall(r"--check ([^\s`;]+)", text) for check in found.split(",")
    }
    assert named
    assert named <= CHECKS


def test_a_check_of_hardware_has_an_alert_or_a_reason() -> None:
    known = load_hardware()
    hardware = {row.id for row in (*known.checks, *known.events)}
    named = {check for alert in CATALOG.alerts for check in alert.doctor}
    assert not set(CATALOG.without_alert) & named
    assert set(CATALOG.without_alert) == hardware - named
    assert all(CATALOG.without_alert.values())


@pytest.mark.parametrize("name", sorted({entry.name for entry in load_xids().classes}))
def test_the_doctor_confirms_the_xids_of_an_alert(name: str) -> None:
    """By the check that judges each code, if one does."""
    alert = next(each for each in CATALOG.alerts if f'xid=~"[[xids {name}]]"' in each.expr)
    slot = "0000:17:00.0"
    for code in load_xids().codes(name):
        health = HostHealth((), events=(KernelEvent("xid", code, slot),), log_since=1)
        found = {problem.check for problem in judge_gpu_health(health, ())}
        assert found <= set(alert.doctor), code


def test_the_command_of_an_alert_names_its_node() -> None:
    said = {
        rule["alert"]: rule["annotations"].get("doctor", "")
        for rule in rule_groups(CATALOG)[0]["rules"]
        if "alert" in rule
    }
    assert said["GpuHot"] == (
        "gpufleet doctor INVENTORY --limit {{ $labels.node }} --check gpu.temperature"
    )
    assert said["GpuExporterUnstable"].split()[:5] == [
        "gpufleet", "doctor", "INVENTORY", "--limit", "NODE"
    ]  # fmt: skip
    assert said["GpuDaemonSetEmpty"] == "gpufleet doctor INVENTORY --check cluster.plugin"
    assert said["GpuNodeNotReady"].endswith("; gpufleet doctor INVENTORY --check cluster.nodes")
    assert said["GpuIdle"] == ""
