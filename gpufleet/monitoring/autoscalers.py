"""Manifests of autoscalers for a Deployment whose pods have GPUs. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from gpufleet.core.render import render_template
from gpufleet.core.versions import version_tuple
from gpufleet.monitoring.autoscaling_models import Autoscaling, PodLabels, PodMetric
from gpufleet.monitoring.autoscaling_rules import metric_query

FACTORS = {
    suffix: Decimal(base) ** power
    for base, suffixes in ((1000, ["", "k", "M", "G", "T"]), (1024, ["", "Ki", "Mi", "Gi", "Ti"]))
    for power, suffix in enumerate(suffixes)
} | {"m": Decimal("0.001")}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?")
STABILIZATION_SECONDS = 300  # the default of Kubernetes for scaling down


@dataclass(frozen=True, slots=True)
class Scaling:
    """The requested scaling. `value`: a Kubernetes quantity, the average over the pods."""

    namespace: str
    deployment: str
    metric: PodMetric
    value: str
    max_replicas: int
    min_replicas: int = 1
    stabilization_seconds: int = STABILIZATION_SECONDS


def hpa_version(catalog: Autoscaling, served: Collection[str]) -> str:
    """The newest served version of the autoscaler's API, or "" if no version is served."""
    return next((entry.version for entry in catalog.hpa[::-1] if entry.version in served), "")


def hpa_of(catalog: Autoscaling, minor: str) -> str:
    """The newest version of the autoscaler's API that a minor of Kubernetes serves, or ""."""
    number = version_tuple(minor)
    served = [
        entry.version
        for entry in catalog.hpa
        if version_tuple(entry.since) <= number
        and (entry.until is None or number < version_tuple(entry.until))
    ]
    return hpa_version(catalog, served)


def render_hpa(catalog: Autoscaling, wanted: Scaling, api: str, minor: str) -> str:
    """A HorizontalPodAutoscaler in version `api` for Kubernetes `minor`, as YAML."""
    known = version_tuple(minor) >= version_tuple(catalog.behavior.since)
    return render_template(
        "monitoring/hpa.yaml",
        **_shared(wanted),
        api=api,
        metric=wanted.metric.name,
        value=wanted.value,
        behavior=known and api not in catalog.behavior.without,
    )


def scaled_object(catalog: Autoscaling, wanted: Scaling, prometheus: str) -> str:
    """A ScaledObject of KEDA with the same metric, which queries the Prometheus at that URL."""
    return render_template(
        "monitoring/scaled-object.yaml",
        **_shared(wanted),
        prometheus=prometheus,
        query=pods_query(wanted, catalog.labels[-1]),
        value=f"{parse_quantity(wanted.value):f}",  # KEDA reads no suffixes
    )


def pods_query(wanted: Scaling, labels: PodLabels) -> str:
    """The metric summed over the Deployment's pods: one number, as KEDA expects."""
    pods = f"{wanted.deployment}-[a-z0-9]+-[a-z0-9]+"
    matchers = f'{labels.namespace}="{wanted.namespace}",{labels.pod}=~"{pods}"'
    return f"sum({metric_query(wanted.metric, wanted.metric.over, matchers, labels.pod)})"


def parse_quantity(text: str) -> Decimal:
    """A Kubernetes quantity as a number. Raises ValueError.

    Example: 1.5Gi -> 1610612736, 500m -> 0.5
    """
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise ValueError(f"{text} is not a quantity")
    return Decimal(match[1]) * FACTORS[match[2] or ""]


def _shared(wanted: Scaling) -> dict[str, object]:
    return {
        "deployment": wanted.deployment,
        "namespace": wanted.namespace,
        "title": wanted.metric.title,
        "min_replicas": wanted.min_replicas,
        "max_replicas": wanted.max_replicas,
        "stabilization_seconds": wanted.stabilization_seconds,
    }
