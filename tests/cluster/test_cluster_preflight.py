"""deploys/preflight.py on real control planes: reports what gpu_cluster does, changes nothing."""

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
from tests.cluster.users import READ_ALL, TOKEN, kubeconfig_of

pytestmark = pytest.mark.claim(
    "`preflight` of a cluster changes nothing, as a user who may only read.",
    level=5,
)

# kinds that the control plane and the simulated nodes update continuously
RESTLESS = {"Event", "Lease", "Node", "PodMetrics", "NodeMetrics", "APIService"}

READS = 6  # equal ones in a row; the controller of EndpointSlices is slow under load


def everything(bench: Bench) -> dict[str, str]:
    """resourceVersion of every object of every kind but the RESTLESS, and the labels of nodes."""
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
    """All objects of the cluster, once the controllers are idle."""
    seen: list[dict[str, str]] = []

    def unchanged() -> bool:
        seen.append(everything(bench))
        return seen[-READS:] == [seen[-1]] * READS

    assert wait_until(unchanged, 120)
    return seen[-1]


def blockers(planned: Outcome) -> list[str]:
    found = planned.report["findings"]
    return [finding["code"] for finding in found if finding["severity"] == "blocker"]


@pytest.fixture
def preflight(bench: Bench, tmp_path: Path) -> Callable[..., Outcome]:
    """Run preflight as a user who can read everything and write nothing."""
    reader = kubeconfig_of(bench.cluster, "default", READ_ALL, tmp_path / "reader")
    return lambda **data: bench.deploy(
        deploy="preflight", **{"cluster_kubeconfig": str(reader), **data}
    )


def test_preflight_reports_all_changes_and_makes_none(
    bench: Bench, preflight: Callable[..., Outcome]
) -> None:
    planned = preflight()
    assert planned.returncode == 0, planned.output
    assert bench.releases() == {}
    assert "monitoring" not in {found.metadata.name for found in bench.core.list_namespace().items}
    chosen = choose_charts(load_charts(), bench.cluster.version)
    versions = {name: {"before": None, "after": chosen[name].version} for name in STACK}
    assert planned.report["releases"] == versions
    assert [part["action"] for part in planned.report["plan"]["releases"]] == ["install"] * 4
    assert "Create Grafana's password" in planned.output
    assert "nvidia-device-plugin: install (release " in planned.output
    assert "+++ nvidia-device-plugin" in planned.output, "the values are shown"
    done = bench.deploy()
    assert done.returncode == 0, done.output
    assert done.report["releases"] == versions, "the deploy does what preflight reported"
    assert done.report["changed"] == planned.report["changed"]
    before = settled(bench)
    planned = preflight()
    assert planned.returncode == 0, planned.output
    assert planned.report["changed"] == 0
    assert {part["action"] for part in planned.report["plan"]["releases"]} == {"no-op"}
    assert everything(bench) == before


@pytest.mark.extended
@pytest.mark.parametrize("bench", KUBERNETES[:1], indirect=True)
def test_an_upgrade_is_shown_with_its_crds_and_values(
    bench: Bench, preflight: Callable[..., Outcome]
) -> None:
    choices = choices_of("kube-prometheus-stack", bench.cluster.version)
    if len(choices) < 2:
        pytest.skip(f"gpufleet chooses no version older than {choices[0]}")
    old, new = choices[-2:]
    pins = {"kube-prometheus-stack": old}
    assert bench.deploy(cluster_chart_versions=pins).returncode == 0
    before = settled(bench)
    planned = preflight(monitoring_node_port=30090)
    assert planned.returncode == 0, planned.output
    assert everything(bench) == before
    first, *others = planned.report["plan"]["releases"]
    assert (first["action"], {part["action"] for part in others}) == ("upgrade", {"no-op"})
    assert "prometheuses.monitoring.coreos.com" in first["crds"]
    assert "update CRD prometheuses.monitoring.coreos.com" in planned.output
    assert any("30090" in line and line.startswith("+") for line in first["diff"])
    moved = planned.report["releases"]["kube-prometheus-stack"]
    assert moved == {"before": old, "after": new}
    assert planned.report["changed"] == 1, planned.output


@pytest.mark.parametrize("bench", KUBERNETES[:1], indirect=True)
def test_every_blocker_is_reported_at_once_and_the_run_fails(
    bench: Bench, preflight: Callable[..., Outcome]
) -> None:
    nowhere = {"cluster_chart_dir": None, "cluster_chart_repository": "https://127.0.0.1:9/charts"}
    planned = preflight(**nowhere)
    assert planned.returncode == 1
    assert blockers(planned) == ["GF841"] * 4
    messages = " ".join(found["message"] for found in planned.report["findings"])
    for chart in STACK:
        assert f"Cannot download chart {chart} " in messages
    planned = preflight(monitoring_values={"prometheus": {"prometheusSpec": 1}})
    assert planned.returncode == 1
    refused = "GF840" if REAL_CHARTS else "GF851"  # the real chart has no schema: rendering fails
    assert blockers(planned) == [refused], "the exporter's missing ServiceMonitor is not reported"
    planned = preflight(monitoring_node_prt=30090)
    assert (planned.returncode, blockers(planned)) == (1, ["GF201"])
    planned = preflight(cluster_context="nobody")
    assert (planned.returncode, blockers(planned)) == (1, ["GF861"])
    assert bench.releases() == {}
