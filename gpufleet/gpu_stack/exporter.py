"""Plans dcgm-exporter of a cluster: its release, and the objects that its chart lacks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufleet.core.merge import merge_mappings, value_at
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.counters import exporter_namespace, list_objects, plan_counters
from gpufleet.gpu_stack.existing import existing_exporters, host_engines
from gpufleet.gpu_stack.model import StackBuilder
from gpufleet.gpu_stack.sharing import measuring_shares
from gpufleet.helm.builder import EXPORTER, chart_values
from gpufleet.helm.chart_choice import memory_limit
from gpufleet.helm.release import Release
from gpufleet.helm.user_values import combine_values
from gpufleet.kube.facts import ClusterNode
from gpufleet.kube.node_answers import is_gpu
from gpufleet.kube.objects import ObjectSet
from gpufleet.monitoring.monitors import MonitorPlan
from gpufleet.monitoring.settings import MonitoringSettings

MONITOR = "gpufleet-dcgm-exporter"
EXPORTER_PART = "exporter-monitor"
TWO_EXPORTERS = "everything is counted twice, and profiling counters have one reader"


@dataclass(frozen=True, slots=True)
class ExporterReleasePlan:
    """The exporter's release, None if gpufleet installs no exporter, and its further objects.

    `collected`: the fields that it collects, None if unknown. `counters`: the ConfigMap with its
    list. `monitor`: its ServiceMonitor, if gpufleet creates it. None keeps the existing one.
    """

    release: Release | None
    collected: frozenset[str] | None
    counters: ObjectSet
    monitor: ObjectSet | None


def no_exporter(build: StackBuilder) -> ExporterReleasePlan:
    """A plan without a release. It keeps the objects that the release of an earlier run uses."""
    wanted = build.settings.monitoring
    monitor = None if build.managed(EXPORTER) else _monitors(wanted, ())
    return ExporterReleasePlan(None, None, list_objects(build, None), monitor)


def plan_exporter_release(build: StackBuilder, monitors: MonitorPlan) -> ExporterReleasePlan:
    """Plan our exporter, without a release if it is disabled or another exporter replaces it."""
    wanted = build.settings.monitoring
    if not (wanted.enabled and wanted.exporter):
        return no_exporter(build)
    others = existing_exporters(build)
    if others and wanted.exporter == "auto" and not build.managed(EXPORTER):
        build.findings.append(findings.EXPORTER_THERE(found=others[0]))
        return no_exporter(build)
    _report_others(build, others)
    counters = plan_counters(build)
    runtime = build.has_feature(EXPORTER, "runtimeClassName")
    before = build.facts.release(wanted.namespace, EXPORTER)
    limit_before = str(value_at(before.values if before else {}, "resources.limits.memory") or "")
    values = chart_values(
        "monitoring/dcgm-exporter.yaml",
        service_monitor=monitors.scrape == "service-monitor",
        monitor_labels=dict(monitors.labels),
        memory=wanted.exporter_memory
        or memory_limit(build.catalog, EXPORTER, _most_gpus(build), limit_before),
        runtime_class=build.settings.device_plugin.runtime_class if runtime else None,
        gpu_labels=build.catalog.gpu_labels.all,
    )
    values, monitor = _monitored(build, monitors, values)
    release = build.release(
        EXPORTER,
        wanted.namespace,
        merge_mappings(values, counters.values),
        wanted=merge_mappings(wanted.exporter_values, {**counters.over, **measuring_shares(build)}),
        everywhere=EXPORTER,
    )
    chosen = release.values["serviceMonitor"] or {}
    if chosen.get("enabled") and not monitors.findings:
        build.findings += monitors.not_selected(chosen.get("additionalLabels") or {})
    if chosen.get("enabled") or monitor.objects:
        build.findings += monitors.not_read(wanted, build.facts, exporter_namespace(wanted))
    lists = list_objects(build, counters.text)
    return ExporterReleasePlan(release, counters.collected, lists, monitor)


def _report_others(build: StackBuilder, others: list[str]) -> None:
    """Report other exporters, and host engines, which may measure the same GPUs."""
    if others:
        build.report_twice(EXPORTER, others[0], TWO_EXPORTERS)
    for engine in host_engines(build)[:1]:
        port = build.catalog.engine_signs.port
        build.findings.append(findings.ENGINE_THERE(found=engine, port=port))


def _most_gpus(build: StackBuilder) -> int | None:
    """The GPUs, or parts of GPUs, of the node with the most. None if a node's count is not known
    yet, or if the plugin is about to divide the GPUs."""
    plugin = build.settings.device_plugin
    if plugin.time_slicing or plugin.mig_strategy != "none":
        return None
    nodes = [node for node in build.facts.nodes if node.name in build.gpu_nodes]
    counts = [_gpus_of(node, build.catalog.gpu_labels.count) for node in nodes]
    return max(counts) if counts and all(counts) else None


def _gpus_of(node: ClusterNode, label: str) -> int:
    """The larger count of GPUs: by GPU Feature Discovery, or as the node advertises them."""
    counted = node.labels.get(label, "")
    offered = sum(count for name, count in node.capacity.items() if is_gpu(name))
    return max(int(counted) if counted.isdecimal() else 0, offered)


def _monitored(
    build: StackBuilder, monitors: MonitorPlan, values: dict[str, Any]
) -> tuple[dict[str, Any], ObjectSet]:
    """The chart's values, and our ServiceMonitor if the chart's has no value for relabelings.

    Relabelings add the node's name: exporters before 3.1.3 report only the name of their pod. If
    the user sets serviceMonitor.enabled, only the chart's ServiceMonitor may exist.
    """
    wanted = build.settings.monitoring
    if build.has_feature(EXPORTER, "serviceMonitor.relabelings"):
        return values, _monitors(wanted, ())
    ours = values["serviceMonitor"]
    plain = {key: value for key, value in ours.items() if key != "relabelings"}
    theirs = wanted.exporter_values.get("serviceMonitor", {})
    if not plain["enabled"] or theirs is None or "enabled" in theirs:
        return {**values, "serviceMonitor": plain}, _monitors(wanted, ())
    chart = build.catalog.charts[EXPORTER]
    chosen = combine_values(chart, {"serviceMonitor": ours}, {"serviceMonitor": theirs})
    body = _service_monitor(chosen["serviceMonitor"], monitors.labels, wanted)
    objects = _monitors(wanted, (body,))
    if not monitors.findings:
        build.findings += monitors.not_selected(objects.labelled()[MONITOR]["metadata"]["labels"])
    return {**values, "serviceMonitor": {**plain, "enabled": False}}, objects


def _monitors(wanted: MonitoringSettings, objects: tuple[dict[str, Any], ...]) -> ObjectSet:
    path = f"/apis/monitoring.coreos.com/v1/namespaces/{wanted.namespace}/servicemonitors"
    return ObjectSet(wanted.namespace, path, EXPORTER_PART, objects)


def _service_monitor(
    chosen: Mapping[str, Any], selected: Mapping[str, str], wanted: MonitoringSettings
) -> dict[str, Any]:
    """The chart's monitor with relabelings. `chosen`: its values, merged with the user's;
    `selected`: labels by which Prometheus selects monitors, which override labels in the values."""
    keys = ("interval", "honorLabels", "relabelings")
    endpoint = {key: chosen[key] for key in keys if chosen[key] is not None}
    labels = {**(chosen.get("additionalLabels") or {}), **selected}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": MONITOR, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/instance": EXPORTER}},
            "namespaceSelector": {"matchNames": [exporter_namespace(wanted)]},
            "endpoints": [{"port": "metrics", "path": "/metrics", **endpoint}],
        },
    }
