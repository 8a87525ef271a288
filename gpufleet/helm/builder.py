"""Build releases from values; shared by the planners of all charts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpufleet.core.findings import Finding
from gpufleet.core.merge import merge_mappings
from gpufleet.core.paths import expand_user_path
from gpufleet.core.render import render_template
from gpufleet.core.yaml_events import LOADER
from gpufleet.helm.chart_choice import ChartChoice
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.helm.findings.releases import RELEASE_ELSEWHERE
from gpufleet.helm.release import ChartSource, Readiness, Release, is_our_release
from gpufleet.helm.settings import ClusterAccess
from gpufleet.helm.user_values import combine_values
from gpufleet.kube.facts import ClusterFacts, HelmRelease, ReleaseRef, Workload

STACK, NFD, PLUGIN = "kube-prometheus-stack", "node-feature-discovery", "nvidia-device-plugin"
EXPORTER, OPERATOR = "dcgm-exporter", "gpu-operator"
ADAPTER, DETECTOR = "prometheus-adapter", "node-problem-detector"
DRA = "dra-driver-nvidia-gpu"


@dataclass(slots=True, kw_only=True)
class ReleaseBuilder:
    """State shared by the planners of a cluster.

    `ours`: chart -> the release of it that gpufleet manages, enabled or not. `labels`: labels that
    the run adds to GPU nodes.
    """

    access: ClusterAccess
    ours: Mapping[str, ReleaseRef]
    facts: ClusterFacts
    catalog: ChartCatalog
    charts: Mapping[str, ChartChoice]
    gpu_nodes: tuple[str, ...]
    labels: Mapping[str, str]
    findings: list[Finding] = field(default_factory=list)

    def release(
        self,
        chart: str,
        namespace: str,
        values: dict[str, Any],
        *,
        wanted: Mapping[str, Any],
        everywhere: str = "",
        crd_version: str = "",
    ) -> Release:
        """A release with the name of its chart. `wanted`: the user's values, which take precedence;
        `everywhere`: the DaemonSet that needs a pod on every GPU node."""
        choice = self.charts[chart]
        self.findings += choice.findings
        self._report_elsewhere(ReleaseRef(namespace, chart))
        access = self.access
        known = self.catalog.charts[chart]
        nodes: dict[str, tuple[str, ...]] = dict.fromkeys(known.may_be_empty, ())
        if everywhere and self.gpu_nodes:
            nodes[everywhere] = self.gpu_nodes
        return Release(
            name=chart,
            namespace=namespace,
            chart=chart,
            version=choice.version,
            source=chart_source(choice, access),
            values=combine_values(known, merge_mappings(values, choice.values), wanted),
            ready=Readiness(nodes, access.timeout, labels=self.labels),
            crd_version=crd_version,
            adopt=access.adopt_releases,
            left_by=known.left_by,
            force_conflicts=access.force_conflicts,
            downgrade=chart in access.chart_versions,  # pinned by version
        )

    def _report_elsewhere(self, wanted: ReleaseRef) -> None:
        """Report our release of the same name in another namespace, unless `wanted` exists too."""
        for found in self.facts.own_releases:
            if found.name == wanted.name and wanted not in self.facts.own_releases:
                key = self.catalog.charts[wanted.name].namespace_key
                self.findings.append(
                    RELEASE_ELSEWHERE(
                        release=found, wanted=wanted.namespace, name=found.name, key=key,
                        namespace=found.namespace,
                    )
                )  # fmt: skip

    def left_by(self, chart: str) -> str:
        """The setting that leaves an existing installation to its owner."""
        return self.catalog.charts[chart].left_by

    def others(self, fits: Callable[[Workload], bool], *, chart: str) -> list[str]:
        """Other owners' objects in place of our release of that chart: a release under our name,
        and matching workloads that have pods or may soon have some."""
        found = [
            work
            for work in self.facts.workloads
            if fits(work)
            and not self.is_ours(work, chart)
            and (work.wanted or not work.settled or not self.gpu_nodes)
        ]
        names = [str(work.ref) for work in found]
        foreign = self.foreign(chart)
        if foreign and not any(work.release == foreign.ref for work in found):
            names.insert(0, f"Release {foreign.ref} ({foreign.chart} {foreign.chart_version})")
        return names

    def is_ours(self, work: Workload, chart: str) -> bool:
        """True if a workload belongs to our release of that chart."""
        ours = self.managed(chart)
        return ours is not None and work in ours.among(self.facts.workloads)

    def managed(self, chart: str) -> HelmRelease | None:
        """Our release of that chart, or one with its name that gpufleet may adopt."""
        return managed_release(self.ours[chart], self.facts, adopt=self.access.adopt_releases)

    def foreign(self, chart: str) -> HelmRelease | None:
        """Another owner's release with the name of that chart."""
        there = managed_release(self.ours[chart], self.facts, adopt=True)
        return there if there and there.chart == chart and not self.managed(chart) else None


def managed_release(ref: ReleaseRef, facts: ClusterFacts, *, adopt: bool) -> HelmRelease | None:
    """The release of that name if it is gpufleet's, also from files of `gpufleet render`, or if
    gpufleet may `adopt` it."""
    found = facts.release(ref.namespace, ref.name)
    if found is None or found.status == "uninstalled":
        return None
    rendered = found.keeper is not None and found.keeper.chart == ref.name
    return found if adopt or rendered or is_our_release(found) else None


def chart_source(choice: ChartChoice, access: ClusterAccess) -> ChartSource:
    """The first source that the settings name: the chart's own repository, the folder of archives,
    the repository of all charts. Otherwise upstream's repository."""
    wanted = access.chart_repository
    own = wanted.get(choice.chart) if isinstance(wanted, dict) else None
    if own is None and access.chart_dir:
        name = f"{choice.chart}-{choice.version}.tgz"
        return ChartSource("archive", str(expand_user_path(access.chart_dir) / name))
    location = own or (wanted if isinstance(wanted, str) else choice.repository)
    if location.startswith("oci://"):
        reference = f"{location}/{choice.chart}"
        return ChartSource("oci", reference, access.chart_logins or "", access.chart_plain_http)
    return ChartSource("repository", location, access.chart_logins or "")


def chart_values(template: str, **known: object) -> dict[str, Any]:
    return yaml.load(render_template(template, **known), LOADER) or {}
