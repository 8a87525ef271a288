"""Autoscalers for pods with GPUs, and why one of them gets no metric.

Asks the API as the autoscaler does, so an answer counts as soon as the API gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import quote, urlencode

from kubernetes import client

from gpufleet.verify.cluster import Answers, CheckedCluster

GROUPS = {"Pods": "custom.metrics.k8s.io", "External": "external.metrics.k8s.io"}
# The reason while the target has 0 replicas, as KEDA leaves it:
# https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/podautoscaler/horizontal.go
# (read 2026-11-28)
SCALED_TO_ZERO = "ScalingDisabled"
VENDOR = "nvidia.com/"  # whole GPUs and partitions, such as nvidia.com/mig-1g.10gb
SCALED_KINDS = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "ReplicaSet": "replicasets",
}


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that an autoscaler requests. `kind`: Pods or External; `selector`: its labels."""

    kind: str
    name: str
    selector: str


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """A HorizontalPodAutoscaler. `pods`: the selector of the pods that it scales."""

    namespace: str
    name: str
    target: str  # Deployment trainer
    pods: str
    metrics: tuple[Metric, ...]
    failing: str  # message of the condition ScalingActive, or "" if nothing is wrong

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def gpu_autoscalers(cluster: CheckedCluster) -> list[Autoscaler]:
    """The autoscalers of pods with GPUs that use a pod metric or an external one."""
    group = cluster.ask(client.AutoscalingApi(cluster.api).get_api_group)
    served = {entry.version for entry in group.versions}
    version = next((v for v in ("v2", "v2beta2", "v2beta1") if v in served), None)
    if version is None:
        return []
    call = client.CustomObjectsApi(cluster.api).list_cluster_custom_object
    items = cluster.listed(call, "autoscaling", version, "horizontalpodautoscalers")
    found = (_autoscaler(cluster, item) for item in items)
    return [one for one in found if one and one.metrics]


def _autoscaler(cluster: CheckedCluster, item: Answers) -> Autoscaler | None:
    namespace, ref = item["metadata"]["namespace"], item["spec"]["scaleTargetRef"]
    target = _target(cluster, namespace, ref)
    if target is None or not _has_gpu(target["spec"]["template"]["spec"]):
        return None
    conditions = item.get("status", {}).get("conditions") or ()
    failing = [
        condition.get("message") or condition.get("reason", "")
        for condition in conditions
        if condition["type"] == "ScalingActive" and condition["status"] == "False"
        if condition.get("reason") != SCALED_TO_ZERO
    ]
    labels = target["spec"]["selector"].get("matchLabels") or {}
    return Autoscaler(
        namespace=namespace,
        name=item["metadata"]["name"],
        target=f"{ref['kind']} {ref['name']}",
        pods=_text(labels),
        metrics=tuple(_metrics(item["spec"].get("metrics") or ())),
        failing="; ".join(failing),
    )


def _target(cluster: CheckedCluster, namespace: str, ref: Mapping[str, str]) -> Answers | None:
    """The object that an autoscaler scales. None if it is missing or of an unknown kind."""
    if ref["kind"] not in SCALED_KINDS:
        return None
    call = client.CustomObjectsApi(cluster.api).get_namespaced_custom_object
    place = ("apps", "v1", namespace, SCALED_KINDS[ref["kind"]])
    found: Answers | None = cluster.find(lambda name, **how: call(*place, name, **how), ref["name"])
    return found


def _has_gpu(spec: Answers) -> bool:
    limits = [part.get("resources", {}).get("limits") or {} for part in spec["containers"]]
    return any(name.startswith(VENDOR) for each in limits for name in each)


def _metrics(entries: Any) -> Iterator[Metric]:
    """Read the metrics: v2 and v2beta2 have `metric`, v2beta1 has metricName."""
    for entry in entries:
        kind = entry["type"]
        if kind in GROUPS:
            about = entry[kind.lower()]
            named = about.get("metric") or {}
            name = named.get("name") or about.get("metricName", "")
            selector = named.get("selector") or about.get("selector") or about.get("metricSelector")
            yield Metric(kind, name, _text((selector or {}).get("matchLabels") or {}))


def _text(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def explain_metric(cluster: CheckedCluster, scaler: Autoscaler, metric: Metric) -> str | None:
    """Why an autoscaler's metric has no value, or None if it has one."""
    group = GROUPS[metric.kind]
    offered = cluster.get(f"/apis/{group}/v1beta1")
    if not isinstance(offered, dict):
        return f"{group} is not served: {offered}"
    if _has_value(cluster, scaler, metric):
        return None  # listed or not: KEDA does not list its metrics (kedacore/keda#4224)
    names = sorted(resource["name"] for resource in offered.get("resources", ()))
    if metric.kind == "Pods":
        names = sorted(name.split("/", 1)[1] for name in names if name.startswith("pods/"))
    if metric.name not in names:
        close = get_close_matches(metric.name, names, n=1, cutoff=0.5)
        if metric.kind == "External" and not close:
            return f"{metric.name} has no value: {scaler.failing}"
        meant = f" (did you mean {close[0]}?)" if close else ""
        there = ", ".join(names) or "none: Prometheus has no series that its rules take"
        return f"no metric is named {metric.name!r}{meant}; available: {there}"
    if metric.selector and _has_value(cluster, scaler, Metric(metric.kind, metric.name, "")):
        return f"{metric.name} has no series with the labels {metric.selector}"
    if metric.kind == "Pods" and _has_value(cluster, scaler, metric, everywhere=True):
        return f"{metric.name} exists, but for other pods than those of {scaler.target}"
    return (
        f"{metric.name} has no series of the namespace {scaler.namespace}: no GPU of it is held by "
        "a running pod, or the labels exported_namespace and exported_pod (namespace and pod with "
        "honorLabels) are missing in Prometheus"
    )


def _has_value(
    cluster: CheckedCluster, scaler: Autoscaler, metric: Metric, *, everywhere: bool = False
) -> bool:
    """True if the API has a value. `everywhere`: for any pod of the namespace."""
    place = f"/apis/{GROUPS[metric.kind]}/v1beta1/namespaces/{scaler.namespace}"
    asked = {}
    if metric.kind == "Pods":
        place += "/pods/" + quote("*")
        asked = {"labelSelector": "" if everywhere else scaler.pods}
    parameters = {**asked, "metricLabelSelector" if asked else "labelSelector": metric.selector}
    query = urlencode({key: value for key, value in parameters.items() if value})
    answer = cluster.get(f"{place}/{metric.name}?{query}")
    return isinstance(answer, dict) and bool(answer.get("items"))


def explain_unavailable_api(cluster: CheckedCluster, group: str) -> str | None:
    """Why the API does not serve a group of metrics, or None."""
    name = f"v1beta1.{group}"
    found = cluster.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")
    if not isinstance(found, dict):
        return f"there is no APIService {name}"
    conditions = found.get("status", {}).get("conditions") or ()
    wrong = [
        f"{condition.get('reason')}: {condition.get('message')}"
        for condition in conditions
        if condition["type"] == "Available" and condition["status"] != "True"
    ]
    return "; ".join(wrong)
