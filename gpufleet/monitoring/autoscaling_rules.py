"""Rules of prometheus-adapter: how series of DCGM become metrics of pods and namespaces. Pure.

The form of the rules: https://github.com/kubernetes-sigs/prometheus-adapter/blob/master/docs/config.md
"""

from __future__ import annotations

from typing import Any

from gpufleet.monitoring.autoscaling_models import (
    Aggregation,
    Autoscaling,
    PodLabels,
    PodMetric,
    ScaledField,
)

Rule = dict[str, Any]
PER_GPU = ("UUID", "GPU_I_ID")  # of a GPU, and of its part under MIG


def custom_rules(catalog: Autoscaling) -> list[Rule]:
    """Rules for metrics of pods, of the API custom.metrics.k8s.io.

    Each metric has a rule per set of labels. The adapter takes the last rule of a name that has
    series, so where Prometheus renames labels, the GPUs that no pod has, and which carry the labels
    of the exporter's own pod, do not count.
    """
    return [
        {
            "seriesQuery": _series(metric, f'{labels.namespace}!="",{labels.pod}!=""'),
            "resources": {
                "overrides": {
                    labels.namespace: {"resource": "namespace"},
                    labels.pod: {"resource": "pod"},
                }
            },
            "name": {"as": metric.name},
            "metricsQuery": metric_query(metric, metric.over, "<<.LabelMatchers>>", "<<.GroupBy>>"),
        }
        for labels in catalog.labels
        for metric in catalog.metrics
    ]


def external_rules(catalog: Autoscaling) -> list[Rule]:
    """Rules for metrics of the autoscaler's namespace, of the API external.metrics.k8s.io."""
    return [_external(metric, labels) for labels in catalog.labels for metric in catalog.metrics]


def _external(metric: PodMetric, labels: PodLabels) -> Rule:
    return {
        "seriesQuery": _series(metric, f'{labels.namespace}!="",{labels.pod}!=""'),
        "resources": {"overrides": {labels.namespace: {"resource": "namespace"}}},
        "name": {"as": metric.name},
        "metricsQuery": metric_query(metric, metric.namespace, "<<.LabelMatchers>>"),
    }


def _series(metric: PodMetric, matchers: str) -> str:
    names = "|".join(entry.field for entry in metric.fields)
    return f'{{__name__=~"{names}",{matchers}}}'


def metric_query(metric: PodMetric, aggregation: Aggregation, matchers: str, by: str = "") -> str:
    """The first field that a pod has; each aggregated on its own, or a pod would count twice."""
    return " or ".join(_part(entry, aggregation, matchers, by) for entry in metric.fields)


def _part(entry: ScaledField, aggregation: Aggregation, matchers: str, by: str) -> str:
    """A GPU counts once, however many jobs scrape it; without `by` however many pods share it."""
    chosen = ",".join([matchers, *([entry.only] if entry.only else [])])
    labels = ", ".join([*([by] if by else []), *PER_GPU])
    each = f"max by ({labels}) ({entry.field}{{{chosen}}})"
    grouped = f" by ({by})" if by else ""
    factor = f" * {entry.scale}" if entry.scale != 1 else ""
    return f"{aggregation}({each}){grouped}{factor}"
