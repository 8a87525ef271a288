"""Runs on a cluster whose stack Flux applies: nothing of it is changed or removed."""

from __future__ import annotations

from typing import Any

import pytest
from cluster_bench import ClusterBench, install, take_away
from memory_cluster import DAEMONS, NAMESPACES

from gpufleet.core.merge import merge_mappings
from tests.roles.steps_of_clusters_setup import RICH, WRITES

pytestmark = pytest.mark.claim(
    "apply and remove change no release and no object that Flux or Argo CD applies.", level=2
)
FLUX = {"helm.toolkit.fluxcd.io/name": "gpufleet-dcgm-exporter"}
OF_OBJECTS = {"kustomize.toolkit.fluxcd.io/name": "gpu-objects"}
DASHBOARDS = f"{NAMESPACES}/monitoring/configmaps/gpufleet-dashboard-"
CHANGED = {"monitoring_dashboard_folder": "Other", "monitoring_exporter_memory": "2Gi"}


def hand_over(bench: ClusterBench) -> None:
    """Flux takes over the exporter and the dashboards."""
    for path, body in list(bench.api.objects.items()):
        labels = FLUX if path.startswith(DAEMONS) else OF_OBJECTS
        if path.startswith((DAEMONS, DASHBOARDS)):
            bench.api.objects[path] = merge_mappings(body, {"metadata": {"labels": labels}})


def written(steps: list[str]) -> list[str]:
    return [line for line in steps if line.startswith(WRITES)]


def test_apply_leaves_what_flux_applies(bench: ClusterBench) -> None:
    data: dict[str, Any] = {**RICH, **CHANGED}
    bench.run(install, **RICH)
    hand_over(bench)
    steps, part = bench.run(install, **RICH)
    assert (written(steps), part.status) == ([], "converged")
    assert [found.code for found in part.findings] == ["GF825"]
    steps, part = bench.run(install, **data)
    assert [line for line in written(steps) if "dashboard" in line or "dcgm" in line] == []
    assert {found.code for found in part.findings} == {"GF826", "GF901"}


def test_remove_leaves_what_flux_applies(bench: ClusterBench) -> None:
    bench.run(install, **RICH)
    hand_over(bench)
    steps, part = bench.run(take_away, **RICH)
    assert [line for line in written(steps) if "dashboard" in line or "dcgm" in line] == []
    assert "GF971" in {found.code for found in part.findings}
