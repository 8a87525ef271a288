"""Dashboards as ConfigMaps that Grafana's sidecar loads. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.merge import value_at
from gpufleet.core.render import TEMPLATES_FOLDER
from gpufleet.kube.facts import ClusterFacts
from gpufleet.kube.objects import ObjectSet
from gpufleet.monitoring.findings import DASHBOARD_TOO_LARGE
from gpufleet.monitoring.models import load_grafana
from gpufleet.monitoring.settings import MonitoringSettings

DASHBOARDS_FOLDER = TEMPLATES_FOLDER / "monitoring" / "dashboards"
DASHBOARDS_PART = "dashboards"


def plan_dashboards(
    wanted: MonitoringSettings, grafana: Mapping[str, Any] | None, *, others: bool = False
) -> tuple[ObjectSet, list[Finding]]:
    """One ConfigMap per dashboard, or none if dashboards are disabled. Too large ones are reported.

    `grafana`: its values, or None if gpufleet does not install it. `others`: whether another
    Grafana loads dashboards.
    """
    on = grafana is not None or others if wanted.dashboards == "auto" else wanted.dashboards
    maps: list[Mapping[str, Any]] = []
    findings: list[Finding] = []
    largest = load_grafana().largest
    sidecar = value_at(grafana, "sidecar.dashboards") or {}
    for path in sorted(DASHBOARDS_FOLDER.glob("*.json")) if wanted.enabled and on else ():
        text = json.dumps(json.loads(path.read_text()), separators=(",", ":"), sort_keys=True)
        if len(text.encode()) > largest:
            findings.append(DASHBOARD_TOO_LARGE(name=path.name, size=len(text), largest=largest))
        maps.append(_config_map(path.stem, text, wanted, sidecar))
    collection = f"/api/v1/namespaces/{wanted.namespace}/configmaps"
    return ObjectSet(wanted.namespace, collection, DASHBOARDS_PART, tuple(maps)), findings


def loads_dashboards(facts: ClusterFacts) -> bool:
    """True if a Grafana runs with the sidecar that loads ConfigMaps."""
    images = set(load_grafana().images)
    return any(work.wanted and images <= set(work.image_names) for work in facts.workloads)


def _config_map(
    name: str, text: str, wanted: MonitoringSettings, sidecar: Mapping[str, Any]
) -> dict[str, Any]:
    """`sidecar`: the values by which Grafana's sidecar finds dashboards."""
    usual = load_grafana().sidecar
    label = {sidecar.get("label") or usual.label: sidecar.get("labelValue") or usual.value}
    folder = sidecar.get("folderAnnotation") or usual.folder
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"gpufleet-dashboard-{name}",
            "labels": wanted.dashboard_labels or label,
            "annotations": {folder: wanted.dashboard_folder},
        },
        "data": {f"gpufleet-{name}.json": text},
    }
