"""dcgm-exporter of a cluster: its release, and the objects that its chart lacks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.merge import merged
from gpufleet.exporter.counters import load_counters
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.builder import StackBuilder
from gpufleet.gpu_stack.counters import plan_counters
from gpufleet.helm.builder import EXPORTER, chart_values
from gpufleet.helm.chart_choice import has_feature, memory_limit
from gpufleet.helm.release import Release
from gpufleet.kube.objects import ObjectSet
from gpufleet.monitoring.monitors import MonitorPlan
from gpufleet.monitoring.settings import MonitoringSettings

MONITOR = "gpufleet-dcgm-exporter"
PART = "exporter-monitor"


@dataclass(frozen=True, slots=True)
class ExporterPlan:
    """The exporter's release. `collected`: the fields that it collects, None if unknown.
    `counters`: the ConfigMap with its list. `monitor`: its ServiceMonitor, if not the chart's."""

    release: Release
    collected: frozenset[str] | None
    counters: ObjectSet
    monitor: ObjectSet


def plan_exporter(build: StackBuilder, monitors: MonitorPlan) -> ExporterPlan | None:
    """The plan of our exporter; None where it is disabled, or others run one."""
    wanted = build.settings.monitoring
    if not (wanted.enabled and wanted.exporter):
        return None
    catalog, version = build.catalog, build.charts[EXPORTER].version
    images = catalog.exporter_images
    others = build.others(*images.names, chart=EXPORTER)
    others += [
        work
        for work in build.facts.on_host_port(images.port)
        if work not in others and not build.is_ours(work, EXPORTER)
    ]
    if others:
        build.findings.append(findings.EXPORTER_THERE(found=others[0].ref))
        return None
    counters = plan_counters(catalog, load_counters(), version, wanted)
    build.findings += counters.findings
    runtime = has_feature(catalog, EXPORTER, version, "runtimeClassName")
    values = chart_values(
        "monitoring/dcgm-exporter.yaml",
        service_monitor=monitors.scrape == "service-monitor",
        monitor_labels=dict(monitors.labels),
        memory=wanted.exporter_memory or memory_limit(catalog, EXPORTER, _most_gpus(build)),
        runtime_class=build.settings.device_plugin.runtime_class if runtime else None,
        gpu_labels=catalog.gpu_labels.labels,
    )
    values, monitor = _monitored(build, values)
    pods = {EXPORTER: len(build.gpu_nodes)} if build.gpu_nodes else {}
    release = build.release(
        EXPORTER,
        wanted.namespace,
        merged(values, counters.values),
        wanted=merged(wanted.exporter_values, counters.lists),
        pods=pods,
    )
    return ExporterPlan(release, counters.collected, counters.objects(wanted), monitor)


def _most_gpus(build: StackBuilder) -> int:
    resource = build.catalog.resource
    return max((node.capacity.get(resource, 0) for node in build.facts.nodes), default=0)


def _monitored(build: StackBuilder, values: dict[str, Any]) -> tuple[dict[str, Any], ObjectSet]:
    """The chart's values, and a ServiceMonitor of ours where the chart's takes no relabelings.

    Without them no label names the node: exporters before 3.1.3 report the name of their pod.
    A user who sets serviceMonitor.enabled has the chart's monitor or none.
    """
    wanted, version = build.settings.monitoring, build.charts[EXPORTER].version
    if has_feature(build.catalog, EXPORTER, version, "serviceMonitor.relabelings"):
        return values, _monitors(wanted, ())
    ours = values["serviceMonitor"]
    plain = {key: value for key, value in ours.items() if key != "relabelings"}
    theirs = wanted.exporter_values.get("serviceMonitor", {})
    if not plain["enabled"] or not isinstance(theirs, Mapping) or "enabled" in theirs:
        return {**values, "serviceMonitor": plain}, _monitors(wanted, ())
    body = _service_monitor(merged(ours, theirs), wanted)
    return {**values, "serviceMonitor": {**plain, "enabled": False}}, _monitors(wanted, (body,))


def _monitors(wanted: MonitoringSettings, objects: tuple[dict[str, Any], ...]) -> ObjectSet:
    path = f"/apis/monitoring.coreos.com/v1/namespaces/{wanted.namespace}/servicemonitors"
    return ObjectSet(wanted.namespace, path, PART, objects)


def _service_monitor(chosen: Mapping[str, Any], wanted: MonitoringSettings) -> dict[str, Any]:
    """The chart's monitor with relabelings. `chosen`: its values, the user's included."""
    keys = ("interval", "honorLabels", "relabelings")
    endpoint = {key: chosen[key] for key in keys if chosen[key] is not None}
    namespace = wanted.exporter_values.get("namespaceOverride") or wanted.namespace
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": MONITOR, "labels": dict(chosen.get("additionalLabels") or {})},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/instance": EXPORTER}},
            "namespaceSelector": {"matchNames": [namespace]},
            "endpoints": [{"port": "metrics", "path": "/metrics", **endpoint}],
        },
    }
