"""NVIDIA's GPU Operator: its release. Pure."""

from __future__ import annotations

from gpufleet.catalog.chart_models import ChartCatalog
from gpufleet.catalog.charts import has_feature
from gpufleet.facts.cluster import ClusterNode
from gpufleet.findings import stack as findings
from gpufleet.plan.monitors import MonitorPlan
from gpufleet.plan.release_model import Release
from gpufleet.plan.stack_builder import OPERATOR, StackBuilder, chart_values


def plan_operator(build: StackBuilder, monitors: MonitorPlan) -> Release:
    wanted = build.settings.gpu_operator
    has_driver = any(_has_driver(node, build.catalog) for node in build.facts.nodes)
    driver = not has_driver if wanted.driver == "auto" else wanted.driver
    if driver and wanted.driver == "auto":
        build.findings.append(findings.OPERATOR_INSTALLS_DRIVERS())
    for work in build.others(*build.catalog.plugin_images.names, chart=OPERATOR):
        if work.namespace != wanted.namespace:  # what the operator itself runs is there
            build.findings.append(findings.PLUGIN_THERE(found=work.ref))
    nfd = build.settings.device_plugin.nfd
    others = [
        work
        for work in build.others(*build.catalog.nfd_images.names, chart=OPERATOR)
        if work.namespace != wanted.namespace
    ]
    version = build.charts[OPERATOR].version
    values = chart_values(
        "gpu-operator/gpu-operator.yaml",
        driver=driver,
        toolkit=driver if wanted.toolkit == "auto" else wanted.toolkit,
        nfd=not others if nfd == "auto" else nfd,
        monitor_switch=has_feature(build.catalog, OPERATOR, version, "dcgmExporter.serviceMonitor"),
        service_monitor=monitors.scrape == "service-monitor",
        monitor_labels=dict(monitors.labels),
    )
    return build.release(OPERATOR, wanted.namespace, values, wanted=wanted.values)


def _has_driver(node: ClusterNode, catalog: ChartCatalog) -> bool:
    if node.capacity.get(catalog.resource):
        return True
    return any(name in node.labels for name in catalog.gpu_labels.driver)
