"""deploys/preflight.py on real control planes: what gpu_cluster would do, and nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import dynamic

from gpufleet.helm.chart_choice import choose_charts, load_charts
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.conftest import KUBERNETES
from tests.cluster.stacking import REAL_CHARTS, STACK, Bench, Outcome, choices_of
from tests.cluster.users import LOOK, TOKEN, kubeconfig_of

# what the control plane and the simulated nodes write by themselves, all the time
RESTLESS = {"Event", "Lease", "Node", "PodMetrics", "NodeMetrics", "APIService"}

LOOKS = 6  # in a row; the controller of EndpointSlices is slow where many wait for it


def everything(bench: Bench) -> dict[str, str]:
    """resourceVersion of every object of every kind that the API serves and nobody touches, and
    the labels of nodes."""
    found: dict[str, str] = {}
    api: Any = dynamic.DynamicClient(bench.cluster.api)
    for resource in api.resources.search():
        if "list" not in (resource.verbs or ()) or resource.kind in RESTLESS:
            continue
        if resource.kind.endswith("List"):
            continue
        for item in resource.get().items:
            if item.metadata.name == TOKEN:
                continue
            key = f"{resource.group_version} {resource.kind} {item.metadata.namespace}"
            found[f"{key}/{item.metadata.name}"] = item.metadata.resourceVersion
    for node in bench.core.list_node().items:
        found[f"labels of {node.metadata.name}"] = str(sorted(node.metadata.labels.items()))
    return found


def settled(bench: Bench) -> dict[str, str]:
    """The same, once controllers have done what they had to do."""
    seen: list[dict[str, str]] = []

    def still() -> bool:
        seen.append(everything(bench))
        return seen[-LOOKS:] == [seen[-1]] * LOOKS

    assert wait_until(still, 120)
    return seen[-1]


def blockers(said: Outcome) -> list[str]:
    found = said.report["findings"]
    return [finding["code"] for finding in found if finding["severity"] == "blocker"]


@pytest.fixture
def look(bench: Bench, tmp_path: Path) -> Callable[..., Outcome]:
    """A run of preflight as a user who may read everything and write nothing."""
    reader = kubeconfig_of(bench.cluster, "default", LOOK, tmp_path / "reader")
    return lambda **data: bench.deploy(
        deploy="preflight", **{"cluster_kubeconfig": str(reader), **data}
    )


def test_what_would_be_done_is_said_and_nothing_is_done(
    bench: Bench, look: Callable[..., Outcome]
) -> None:
    said = look()
    assert said.returncode == 0, said.output
    assert bench.releases() == {}
    assert "monitoring" not in {found.metadata.name for found in bench.core.list_namespace().items}
    chosen = choose_charts(load_charts(), bench.cluster.version)
    versions = {name: {"before": None, "after": chosen[name].version} for name in STACK}
    assert said.report["releases"] == versions
    assert [part["action"] for part in said.report["plan"]["releases"]] == ["install"] * 4
    assert "Make a password for Grafana" in said.output
    assert "nvidia-device-plugin: install (release " in said.output
    assert "+++ nvidia-device-plugin" in said.output, "the values are shown"
    done = bench.deploy()
    assert done.returncode == 0, done.output
    assert done.report["releases"] == versions, "what was said is what was done"
    assert done.report["changed"] == said.report["changed"]
    before = settled(bench)
    said = look()
    assert said.returncode == 0, said.output
    assert said.report["changed"] == 0
    assert {part["action"] for part in said.report["plan"]["releases"]} == {"no-op"}
    assert everything(bench) == before


@pytest.mark.extended
@pytest.mark.parametrize("bench", KUBERNETES[:1], indirect=True)
def test_an_upgrade_is_shown_with_its_crds_and_values(
    bench: Bench, look: Callable[..., Outcome]
) -> None:
    choices = choices_of("kube-prometheus-stack", bench.cluster.version)
    if len(choices) < 2:
        pytest.skip(f"there is no older choice than {choices[0]} to come from")
    old, new = choices[-2:]
    pins = {"kube-prometheus-stack": old}
    assert bench.deploy(cluster_chart_versions=pins).returncode == 0
    before = settled(bench)
    said = look(monitoring_node_port=30090)
    assert said.returncode == 0, said.output
    assert everything(bench) == before
    first, *others = said.report["plan"]["releases"]
    assert (first["action"], {part["action"] for part in others}) == ("upgrade", {"no-op"})
    assert "prometheuses.monitoring.coreos.com" in first["crds"]
    assert "update CRD prometheuses.monitoring.coreos.com" in said.output
    assert any("30090" in line and line.startswith("+") for line in first["diff"])
    moved = said.report["releases"]["kube-prometheus-stack"]
    assert moved == {"before": old, "after": new}
    assert said.report["changed"] == 1, said.output


@pytest.mark.parametrize("bench", KUBERNETES[:1], indirect=True)
def test_every_blocker_is_told_at_once_and_the_run_fails(
    bench: Bench, look: Callable[..., Outcome]
) -> None:
    nowhere = {"cluster_chart_dir": None, "cluster_chart_repository": "https://127.0.0.1:9/charts"}
    said = look(**nowhere)
    assert said.returncode == 1
    assert blockers(said) == ["GF841"] * 4
    messages = " ".join(found["message"] for found in said.report["findings"])
    for chart in STACK:
        assert f"Cannot download chart {chart} " in messages
    said = look(monitoring_values={"prometheus": {"prometheusSpec": 1}})
    assert said.returncode == 1
    refused = "GF840" if REAL_CHARTS else "GF851"  # the real chart has no schema: rendering fails
    assert blockers(said) == [refused], "that the exporter lacks its ServiceMonitor is no cause"
    said = look(monitoring_node_prt=30090)
    assert (said.returncode, blockers(said)) == (1, ["GF201"])
    said = look(cluster_context="nobody")
    assert (said.returncode, blockers(said)) == (1, ["GF862"])
    assert bench.releases() == {}
