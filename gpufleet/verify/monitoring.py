"""Compares Prometheus' targets with the expected ones, and reads its operator's conditions.

Conditions: https://prometheus-operator.dev/docs/api-reference/api/ (read 2026-11-27).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from gpufleet.kube.prometheus import DISCOVERY_SECONDS
from gpufleet.verify.cluster import PROMETHEUS_RESOURCE, Answers, CheckedCluster
from gpufleet.verify.releases import by_argocd, deployed_release

NEW = timedelta(seconds=DISCOVERY_SECONDS)


def scraped_twice(series: Iterable[Mapping[str, Any]]) -> list[str]:
    """The jobs that scrape the same GPU, as "a, b". They would double any sum over GPUs."""
    jobs: dict[str, set[str]] = {}
    for each in series:
        labels = each["metric"]
        jobs.setdefault(labels.get("UUID", ""), set()).add(labels.get("job", ""))
    return sorted({", ".join(sorted(found)) for found in jobs.values() if len(found) > 1})


def absent_pods(up: Mapping[str, str], pods: Iterable[Any]) -> list[Any]:
    """The pods that are not a target."""
    return [pod for pod in pods if pod.metadata.name not in up]


def are_new(pods: Iterable[Any], now: datetime) -> bool:
    """True if all of these pods became Ready so recently that they may still become targets."""
    return all(now - _ready_since(pod, now) < NEW for pod in pods)


def _ready_since(pod: Any, now: datetime) -> datetime:
    """When a pod became Ready. `now` if its status does not say."""
    for condition in pod.status.conditions or ():
        if condition.type == "Ready" and condition.last_transition_time:
            since: datetime = condition.last_transition_time
            return since
    return now


STACK = "kube-prometheus-stack"
RELEASE = "meta.helm.sh/release-name"
CONDITIONS = ("Reconciled", "Available")
ALERTMANAGER_RESOURCE = ("monitoring.coreos.com", "v1", "alertmanagers")
# parts of the chart's values
PARTS = {"prometheus": PROMETHEUS_RESOURCE, "alertmanager": ALERTMANAGER_RESOURCE}


def installed_objects(cluster: CheckedCluster) -> dict[str, list[Answers]]:
    """Objects of our release, by part of the chart. {} without the release."""
    if not deployed_release(cluster, STACK):
        return {}
    found: dict[str, list[Answers]] = {}
    for part, kind in PARTS.items():
        found[part] = [one for one in cluster.custom(kind) if _is_part(one["metadata"])]
    return found


def _is_part(metadata: Mapping[str, Any]) -> bool:
    annotations = metadata.get("annotations") or {}
    return annotations.get(RELEASE) == STACK or by_argocd(
        annotations, metadata.get("labels"), STACK
    )


def monitoring_problems(found: Mapping[str, list[Answers]], data: Mapping[str, Any]) -> list[str]:
    """Parts that are missing or not working. A part that the inventory disables is not missing."""
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
