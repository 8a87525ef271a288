"""Dashboards as ConfigMaps that Grafana's sidecar loads. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.render import TEMPLATES
from gpufleet.kube.objects import ObjectSet
from gpufleet.monitoring.findings import DASHBOARD_TOO_LARGE
from gpufleet.monitoring.models import load_grafana
from gpufleet.monitoring.settings import MonitoringSettings

FOLDER = TEMPLATES / "monitoring" / "dashboards"
PART = "dashboards"


def plan_dashboards(wanted: MonitoringSettings, grafana: bool) -> tuple[ObjectSet, list[Finding]]:
    """One ConfigMap per dashboard, none where they are disabled; one that is too large is reported.

    `grafana`: whether ours is installed.
    """
    on = grafana if wanted.dashboards == "auto" else wanted.dashboards
    maps: list[Mapping[str, Any]] = []
    findings: list[Finding] = []
    largest = load_grafana().largest
    for path in sorted(FOLDER.glob("*.json")) if wanted.enabled and on else ():
        text = json.dumps(json.loads(path.read_text()), separators=(",", ":"), sort_keys=True)
        if len(text.encode()) > largest:
            findings.append(DASHBOARD_TOO_LARGE(name=path.name, size=len(text), largest=largest))
        maps.append(_config_map(path.stem, text, wanted))
    collection = f"/api/v1/namespaces/{wanted.namespace}/configmaps"
    return ObjectSet(wanted.namespace, collection, PART, tuple(maps)), findings


def _config_map(name: str, text: str, wanted: MonitoringSettings) -> dict[str, Any]:
    sidecar = load_grafana().sidecar
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"gpufleet-dashboard-{name}",
            "labels": wanted.dashboard_labels or {sidecar.label: sidecar.value},
            "annotations": {sidecar.folder: wanted.dashboard_folder},
        },
        "data": {f"gpufleet-{name}.json": text},
    }
