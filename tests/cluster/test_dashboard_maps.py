"""Dashboards in a real cluster: ConfigMaps that Grafana's sidecar finds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpufleet.monitoring.models import load_grafana
from tests.cluster.stacking import Bench

pytestmark = pytest.mark.claim(
    "Dashboards reach the cluster as ConfigMaps, are restored, and go when disabled.",
    level=5,
)

NAMES = {f"gpufleet-dashboard-{name}" for name in ("capacity", "fleet", "gpu", "node", "workload")}


def config_maps(bench: Bench) -> dict[str, Any]:
    """Dashboards other than the chart's that its sidecar finds by default: name -> ConfigMap."""
    sidecar = load_grafana().sidecar
    selector = f"{sidecar.label}={sidecar.value}"
    found = bench.core.list_config_map_for_all_namespaces(label_selector=selector).items
    charts = "meta.helm.sh/release-name"  # annotation
    return {
        one.metadata.name: one for one in found if charts not in (one.metadata.annotations or {})
    }


def test_the_dashboards_are_loaded_once(bench: Bench) -> None:
    done = bench.deploy()
    assert done.returncode == 0, done.output
    found = config_maps(bench)
    assert set(found) == NAMES
    for one in found.values():
        assert one.metadata.namespace == "monitoring"
        assert one.metadata.annotations[load_grafana().sidecar.folder] == "GPU"
        [(key, text)] = one.data.items()
        assert key.endswith(".json")
        assert json.loads(text)["panels"]
    versions = {name: one.metadata.resource_version for name, one in found.items()}
    again = bench.deploy()
    assert again.report["changed"] == 0, again.output
    after = config_maps(bench)
    assert {name: one.metadata.resource_version for name, one in after.items()} == versions


@pytest.mark.extended
def test_a_changed_dashboard_is_restored_and_others_are_left_alone(current: Bench) -> None:
    assert current.deploy().returncode == 0
    before = config_maps(current)["gpufleet-dashboard-node"].data
    body = {"data": dict.fromkeys(before, "{}")}
    current.core.patch_namespaced_config_map("gpufleet-dashboard-node", "monitoring", body)
    current.core.delete_namespaced_config_map("gpufleet-dashboard-gpu", "monitoring")
    theirs = {"metadata": {"name": "theirs", "labels": {"grafana_dashboard": "1"}}}
    current.core.create_namespaced_config_map("monitoring", theirs)
    assert set(config_maps(current)) == {*NAMES - {"gpufleet-dashboard-gpu"}, "theirs"}
    done = current.deploy()
    assert done.returncode == 0, done.output
    assert done.report["changed"] == 1
    assert set(config_maps(current)) == {*NAMES, "theirs"}
    assert config_maps(current)["gpufleet-dashboard-node"].data == before
    assert current.deploy(monitoring_dashboards=False).returncode == 0
    assert set(config_maps(current)) == {"theirs"}


@pytest.mark.extended
def test_without_our_grafana_dashboards_are_loaded_only_if_configured(current: Bench) -> None:
    assert current.deploy(monitoring_prometheus="none").returncode == 0
    assert config_maps(current) == {}
    done = current.deploy(
        monitoring_prometheus="none", monitoring_namespace="boards", monitoring_exporter=False,
        monitoring_dashboards=True, monitoring_dashboard_labels={"load": "me"},
    )  # fmt: skip
    assert done.returncode == 0, done.output
    found = current.core.list_namespaced_config_map("boards", label_selector="load=me").items
    assert {one.metadata.name for one in found} == NAMES
