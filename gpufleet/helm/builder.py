"""Build releases from values; shared by the planners of all charts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpufleet.core.findings import Finding
from gpufleet.core.merge import merged
from gpufleet.core.paths import expanded
from gpufleet.core.render import render
from gpufleet.helm.chart_choice import ChartChoice
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.helm.release import ChartSource, Readiness, Release
from gpufleet.helm.settings import ClusterAccess
from gpufleet.helm.user_values import combined
from gpufleet.kube.facts import ClusterFacts, ReleaseRef, Workload

STACK, NFD, PLUGIN = "kube-prometheus-stack", "node-feature-discovery", "nvidia-device-plugin"
EXPORTER, OPERATOR = "dcgm-exporter", "gpu-operator"
ADAPTER, DETECTOR = "prometheus-adapter", "node-problem-detector"


@dataclass(slots=True, kw_only=True)
class ReleaseBuilder:
    """State that the planners of a cluster share.

    `ours`: chart -> the release of it that gpufleet manages, enabled or not.
    """

    access: ClusterAccess
    ours: Mapping[str, ReleaseRef]
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
        crd_version: str = "",
    ) -> Release:
        """A release under its chart's name. `wanted`: the user's values, which take precedence."""
        choice = self.charts[chart]
        self.findings += choice.findings
        access = self.access
        known = self.catalog.charts[chart]
        may_be_empty = dict.fromkeys(known.may_be_empty, 0)
        return Release(
            name=chart,
            namespace=namespace,
            chart=chart,
            version=choice.version,
            source=chart_source(choice, access),
            values=combined(known, merged(values, choice.values), wanted),
            ready=Readiness({**may_be_empty, **(pods or {})}, access.timeout),
            crd_version=crd_version,
            adopt=access.adopt_releases,
            force_conflicts=access.force_conflicts,
            downgrade=chart in access.chart_versions,  # pinned by version
        )

    def others(self, *images: str, chart: str) -> list[Workload]:
        """Workloads with one of these images and node access outside our release of that chart. An
        image's name alone proves nothing: every user can use it."""
        return [
            work
            for work in self.facts.running(*images)
            if work.uses_node and not self.is_ours(work, chart)
        ]

    def is_ours(self, work: Workload, chart: str) -> bool:
        """Whether a workload belongs to our release of that chart."""
        return work in self.facts.workloads_of(self.ours[chart])


def chart_source(choice: ChartChoice, access: ClusterAccess) -> ChartSource:
    """By the settings, in this order: the chart's own repository, the folder of archives, the
    repository of all charts, upstream's repository."""
    wanted = access.chart_repository
    own = wanted.get(choice.chart) if isinstance(wanted, dict) else None
    if own is None and access.chart_dir:
        name = f"{choice.chart}-{choice.version}.tgz"
        return ChartSource("archive", str(expanded(access.chart_dir) / name))
    location = own or (wanted if isinstance(wanted, str) else choice.repository)
    if location.startswith("oci://"):
        reference = f"{location}/{choice.chart}"
        return ChartSource("oci", reference, access.chart_logins or "", access.chart_plain_http)
    return ChartSource("repository", location, access.chart_logins or "")


def chart_values(template: str, **known: object) -> dict[str, Any]:
    return yaml.safe_load(render(template, **known)) or {}
