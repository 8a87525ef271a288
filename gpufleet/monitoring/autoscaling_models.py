"""Types of autoscaling.yaml, which explains its fields."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.helm.chart_models import ChartVersion, Minor

Aggregation = Literal["avg", "max", "sum"]


class ScaledField(Entry):
    """A field of DCGM, times `scale`. `only`: a matcher of labels, for some of its series."""

    field: Annotated[str, Field(pattern=r"^DCGM_FI_\w+$")]
    scale: int = 1
    only: str = ""


class PodMetric(Sourced):
    """A metric of pods. `target`: an example of what to hold it at, as a Kubernetes quantity."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: str
    fields: tuple[ScaledField, ...]
    over: Aggregation
    namespace: Aggregation
    target: str


class PodLabels(Sourced):
    """The labels with a series' namespace and pod, and their condition."""

    namespace: str
    pod: str
    when: str


class HpaVersion(Entry):
    """A version of the autoscaler's API; `until` is the first minor that does not serve it."""

    version: str
    since: Minor
    until: Minor | None = None


class Behavior(Sourced):
    """The field `behavior` of an autoscaler: the minor that added it, versions without it."""

    since: Minor
    without: tuple[str, ...]


class MetricsApis(Sourced):
    """Groups of the APIs for metrics."""

    custom: str
    external: str


class AdapterChart(Sourced):
    """Values of the prometheus-adapter chart; `image` for versions below `image_below`."""

    relist: str
    image: str
    image_below: ChartVersion


class Autoscaling(Entry):
    """autoscaling.yaml"""

    as_of: date
    metrics: tuple[PodMetric, ...]
    labels: tuple[PodLabels, ...]
    hpa: tuple[HpaVersion, ...]
    hpa_source: str
    behavior: Behavior
    apis: MetricsApis
    adapter: AdapterChart

    def metric(self, name: str) -> PodMetric | None:
        return next((metric for metric in self.metrics if metric.name == name), None)


load_autoscaling = entry_loader(Autoscaling, "monitoring/autoscaling")
