"""What the parts of a GPU stack's plan have in common: how a release is made of its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpufleet.catalog.chart_models import ChartCatalog
from gpufleet.catalog.charts import ChartChoice, merged
from gpufleet.facts.cluster import ClusterFacts, Workload
from gpufleet.findings import Finding
from gpufleet.plan.chart_source import chart_source
from gpufleet.plan.release_model import CrdPolicy, Readiness, Release
from gpufleet.plan.render import render
from gpufleet.settings import ClusterSettings

STACK, NFD, PLUGIN = "kube-prometheus-stack", "node-feature-discovery", "nvidia-device-plugin"
EXPORTER, OPERATOR = "dcgm-exporter", "gpu-operator"
ANY_CRDS = CrdPolicy()


@dataclass(slots=True)
class StackBuilder:
    """What the parts of the plan share while it is made."""

    settings: ClusterSettings
    facts: ClusterFacts
    catalog: ChartCatalog
    charts: Mapping[str, ChartChoice]
    gpu_nodes: tuple[str, ...]
    findings: list[Finding] = field(default_factory=list)

    def release(
        self,
        chart: str,
        namespace: str,
        values: dict[str, Any],
        *,
        wanted: Mapping[str, Any],
        pods: Mapping[str, int] | None = None,
        crds: CrdPolicy = ANY_CRDS,
    ) -> Release:
        """A release under its chart's name. `wanted`: the user's values, which count most."""
        choice = self.charts[chart]
        self.findings += choice.findings
        access = self.settings.cluster
        return Release(
            name=chart,
            namespace=namespace,
            chart=chart,
            version=choice.version,
            source=chart_source(choice, access),
            values=merged(merged(values, choice.values), wanted),
            ready=Readiness({**_empty(self.catalog, chart), **(pods or {})}, access.timeout),
            crds=crds,
            pod_security="privileged",  # host ports, host network, device nodes
            adopt=access.adopt_releases,
            force_conflicts=access.force_conflicts,
            downgrade=chart in access.chart_versions,  # asked for by version
        )

    def others(self, *images: str, chart: str) -> list[Workload]:
        """What runs one of these images and belongs to no release of that chart which is ours."""
        return [
            work
            for work in self.facts.running(*images)
            if work.release is None or work.release.name != chart
        ]


def chart_values(template: str, **known: object) -> dict[str, Any]:
    return yaml.safe_load(render(template, **known)) or {}


def _empty(catalog: ChartCatalog, chart: str) -> dict[str, int]:
    """The DaemonSets that may be without pods, as `Readiness` has them."""
    return dict.fromkeys(catalog.charts[chart].may_be_empty, 0)
