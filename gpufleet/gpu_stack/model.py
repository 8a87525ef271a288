"""The plan of a cluster's GPU stack, and the builder that its parts share. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.node_labels import LabelChange
from gpufleet.gpu_stack.node_sharing import NodeSharing
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.builder import ReleaseBuilder
from gpufleet.helm.chart_choice import has_feature, load_charts
from gpufleet.helm.release import Release
from gpufleet.kube.facts import ReleaseRef
from gpufleet.kube.objects import MANAGED_BY_LABELS, ObjectSet

NODE_MARK = "gpufleet-labelled"  # annotation of a node; its value: the label that gpufleet set


@dataclass(frozen=True, slots=True)
class StackPlan:
    """The releases of a cluster, in the order of installation.

    `gpu_nodes`: nodes known to have GPUs. `label_nodes`: nodes that get `label`. `secret`:
    namespace and name of the Secret with the password of Grafana's `grafana_user`, created if
    missing; or None if Grafana does not use it. `dashboards`: ConfigMaps with dashboards. `alerts`:
    the rules about GPUs. `counters`: the ConfigMap with the exporter's list. `exporter_monitor`:
    its ServiceMonitor, if its chart creates no suitable one. None keeps the existing one.
    `receivers`: namespace and name of the user's Secret with Alertmanager's receivers.
    `config_labels`: nodes that get another configuration of the device plugin, or move to the DRA
    driver or from it.
    """

    releases: tuple[Release, ...]
    gpu_nodes: tuple[str, ...]
    label_nodes: tuple[str, ...]
    label: str
    label_value: str
    secret: tuple[str, str] | None
    grafana_user: str
    dashboards: ObjectSet
    alerts: ObjectSet
    counters: ObjectSet
    exporter_monitor: ObjectSet | None
    receivers: tuple[str, str] | None
    config_labels: tuple[LabelChange, ...]
    findings: tuple[Finding, ...]

    @property
    def blockers(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.blocks)


@dataclass(slots=True, kw_only=True)
class StackBuilder(ReleaseBuilder):
    """A builder that has the settings of every role."""

    settings: ClusterSettings
    sharing: NodeSharing

    def has_feature(self, chart: str, feature: str) -> bool:
        """True if the selected version of a chart has a value."""
        return has_feature(self.catalog, chart, self.charts[chart].version, feature)

    def report_twice(self, chart: str, found: str, why: str) -> None:
        """Report that our release of a chart is installed beside another component."""
        left_by = self.left_by(chart)
        self.findings.append(
            findings.INSTALLED_TWICE(found=found, chart=chart, why=why, left_by=left_by)
        )

    def report_no_effect(
        self, keys: Collection[str], chart: str, *, lacks: str, instead: str
    ) -> None:
        """Report the settings, if any, that have no effect on the release of a chart."""
        if keys:
            names = ", ".join(keys)
            self.findings.append(
                findings.NO_EFFECT(keys=names, chart=chart, lacks=lacks, instead=instead)
            )


def runtime_class(name: str, api_version: str) -> dict[str, Any]:
    """The RuntimeClass by which pods select the container runtime of that name."""
    about = {"name": name, "labels": MANAGED_BY_LABELS}
    return {"apiVersion": api_version, "kind": "RuntimeClass", "metadata": about, "handler": name}


def node_names(hosts: Iterable[str]) -> list[str]:
    """Names of the inventory's GPU nodes, each also without its domain."""
    return [name for host in hosts for name in dict.fromkeys([host, host.split(".")[0]])]


def our_releases(settings: ClusterSettings) -> tuple[ReleaseRef, ...]:
    """Every release that gpufleet may install in a cluster, even if the settings do not request it,
    in the order of installation. A release has the name of its chart."""
    roles = (settings.device_plugin, settings.monitoring, settings.gpu_operator)
    spaces = {f"{role.prefix}{name}": value for role in roles for name, value in vars(role).items()}
    charts = load_charts().charts
    return tuple(ReleaseRef(spaces[chart.namespace_key], name) for name, chart in charts.items())
