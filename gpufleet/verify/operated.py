"""The Prometheus and Alertmanager that gpufleet installed, as their operator reports them.

Their conditions: https://prometheus-operator.dev/docs/api-reference/api/ (read 2026-11-27).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpufleet.verify.cluster import PROMETHEUSES, Answers, Cluster
from gpufleet.verify.releases import deployed

STACK = "kube-prometheus-stack"
ALERTMANAGERS = ("monitoring.coreos.com", "v1", "alertmanagers")
RELEASE = "meta.helm.sh/release-name"
CONDITIONS = ("Reconciled", "Available")
PARTS = {"prometheus": PROMETHEUSES, "alertmanager": ALERTMANAGERS}  # of the chart's values


def installed(cluster: Cluster) -> dict[str, list[Answers]]:
    """Objects of our release by part of its chart; {} without the release."""
    if not deployed(cluster, STACK):
        return {}
    return {part: _ours(cluster.custom(kind)) for part, kind in PARTS.items()}


def _ours(objects: Iterable[Answers]) -> list[Answers]:
    return [
        found
        for found in objects
        if (found["metadata"].get("annotations") or {}).get(RELEASE) == STACK
    ]


def problems(found: Mapping[str, list[Answers]], data: Mapping[str, Any]) -> list[str]:
    """What is missing or does not work; nothing is missing that the inventory's values disable."""
    values = (data.get("monitoring_values") or {}).get("prometheus") or {}
    there = found["prometheus"] or values.get("enabled") is False
    wrong = [] if there else ["no Prometheus"]
    for part, objects in found.items():
        for item in objects:
            reported = (item.get("status") or {}).get("conditions") or ()
            wrong += [
                f"{part} {item['metadata']['name']}: {entry['type']} is {entry['status']} "
                f"({entry.get('message') or entry.get('reason')})"
                for entry in reported
                if entry["type"] in CONDITIONS and entry["status"] != "True"
            ]
    return wrong
