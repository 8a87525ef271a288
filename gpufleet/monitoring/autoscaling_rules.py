"""Rules of prometheus-adapter: how series of DCGM become metrics of pods and namespaces. Pure.

The form of the rules: https://github.com/kubernetes-sigs/prometheus-adapter/blob/master/docs/config.md
"""

from __future__ import annotations

from typing import Any

from gpufleet.monitoring.autoscaling_models import Aggregation, Autoscaling, PodLabels, PodMetric

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
            "seriesQuery": _series(metric, labels),
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
    return [
        {
            "seriesQuery": _series(metric, labels),
            "resources": {"overrides": {labels.namespace: {"resource": "namespace"}}},
            "name": {"as": metric.name},
            "metricsQuery": metric_query(metric, metric.namespace, "<<.LabelMatchers>>"),
        }
        for labels in catalog.labels
        for metric in catalog.metrics
    ]


def _series(metric: PodMetric, labels: PodLabels) -> str:
    names = "|".join(entry.field for entry in metric.fields)
    return f'{{__name__=~"{names}",{labels.namespace}!="",{labels.pod}!=""}}'


def metric_query(metric: PodMetric, aggregation: Aggregation, matchers: str, by: str = "") -> str:
    """The first field that a pod has; each aggregated on its own, or a pod would count twice. A GPU
    counts once, however many jobs scrape it; without `by` however many pods share it."""
    labels = ", ".join([*([by] if by else []), *PER_GPU])
    grouped = f" by ({by})" if by else ""
    parts = []
    for entry in metric.fields:
        chosen = f"{matchers},{entry.only}" if entry.only else matchers
        each = f"max by ({labels}) ({entry.field}{{{chosen}}})"
        factor = f" * {entry.scale}" if entry.scale != 1 else ""
        parts.append(f"{aggregation}({each}){grouped}{factor}")
    return " or ".join(parts)
