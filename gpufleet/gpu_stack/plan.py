"""Decides which releases a cluster's GPU stack has, and in which order. Pure."""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType

from gpufleet.combinations.models import load_combinations
from gpufleet.core.merge import merge_mappings, value_at
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.combinations import judge_cluster
from gpufleet.gpu_stack.device_plugin import plan_nfd, plan_plugin
from gpufleet.gpu_stack.dra import plan_dra
from gpufleet.gpu_stack.existing import (
    node_exporters,
    prometheus_operators,
    unknown_handlers,
)
from gpufleet.gpu_stack.exporter import no_exporter, plan_exporter_release
from gpufleet.gpu_stack.gpu_operator import MONITOR_SWITCH, plan_operator
from gpufleet.gpu_stack.model import StackBuilder, StackPlan, our_releases
from gpufleet.gpu_stack.node_sharing import HostData, load_gpu_keys, plan_sharing
from gpufleet.gpu_stack.reliances import reliance_conflicts
from gpufleet.gpu_stack.removal import left_releases
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.gpu_stack.sharing_checks import (
    parts_of_sharing,
    plan_config_labels,
    values_of_sharing,
)
from gpufleet.helm.builder import OPERATOR, STACK, chart_values
from gpufleet.helm.chart_choice import choose_charts
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.helm.release import Release
from gpufleet.kube.facts import ClusterFacts, ClusterNode, ReleaseRef
from gpufleet.kube.node_answers import has_gpus
from gpufleet.monitoring.adapter import adapter_url, plan_adapter
from gpufleet.monitoring.alerting import plan_alerts
from gpufleet.monitoring.alertmanager import CONFIG_SECRET
from gpufleet.monitoring.control_plane import control_plane_values
from gpufleet.monitoring.dashboards import loads_dashboards, plan_dashboards
from gpufleet.monitoring.models import load_grafana
from gpufleet.monitoring.monitors import MonitorPlan, plan_monitors
from gpufleet.monitoring.node_problems import plan_detector
from gpufleet.monitoring.prometheus_stack import (
    GRAFANA_SECRET,
    GRAFANA_USER,
    alertmanager_namespace,
    grafana_of,
    password_secret,
)

TWO_OPERATORS = "both manage the same kinds of objects in all namespaces"
NODE_EXPORTER_VALUES = ("nodeExporter", "prometheus-node-exporter")
ONLY_FOR_STACK = (
    "values",
    "alert_receivers",
    "node_port",
    "grafana_node_port",
    "grafana_existing_secret",
    "admission_webhooks",
)
NO_DATA: HostData = MappingProxyType({})
OPERATOR_VERSION = "operator.prometheus.io/version"  # annotation of the CRDs


def plan_stack(
    settings: ClusterSettings,
    facts: ClusterFacts,
    catalog: ChartCatalog,
    hosts: Collection[str] = (),
    data: HostData = NO_DATA,
) -> StackPlan:
    """Plan the releases of one cluster. Problems are reported as findings, not raised.

    `hosts`: names in the inventory's group gpu_nodes; names that are not nodes have no effect.
    `data`: host of that group -> its data.
    """
    access = settings.cluster
    plugin, catalog_labels = settings.device_plugin, catalog.gpu_labels.labels
    charts = choose_charts(catalog, facts.server.full, access.charts, access.chart_versions)
    labelled = tuple(node.name for node in facts.nodes if _has_gpu(node, catalog))
    named = tuple(node.name for node in facts.nodes if node.name in hosts)
    label_nodes = _unlabelled(settings, facts, catalog, {*labelled, *named})
    known = tuple(dict.fromkeys([*labelled, *label_nodes]))
    keys, wrong = load_gpu_keys(data, facts)
    build = StackBuilder(
        access=access,
        ours={ref.name: ref for ref in our_releases(settings)},
        facts=facts,
        catalog=catalog,
        charts=charts,
        gpu_nodes=known,
        settings=settings,
        sharing=plan_sharing(settings, facts, keys),
        findings=list(wrong),
        labels=catalog_labels if plugin.nfd is not False or plugin.label_nodes else {},
    )
    monitoring = settings.monitoring
    operator = access.stack == "gpu-operator"
    monitors = _monitors(build, operator=operator)
    prometheus = _prometheus(build, monitors)
    parts = [prometheus]
    exporter = no_exporter(build)
    if operator:
        parts.append(plan_operator(build, monitors, named))
    else:
        advertising = plan_plugin(build)
        parts += [plan_nfd(build, advertising, labels_nodes=bool(label_nodes)), advertising]
        parts.append(plan_dra(build, advertising, data))
        exporter = plan_exporter_release(build, monitors)
        parts.append(exporter.release)
    parts.append(plan_adapter(build, monitoring, prometheus))
    parts.append(plan_detector(build, monitoring, monitors))
    releases = tuple(release for release in parts if release)
    if not known:
        advice = "NFD labels them once it runs: run again. No action required if none has joined."
        if plugin.nfd is False or plugin.label_nodes:
            advice = "Name them in the inventory's group gpu_nodes as Kubernetes names them."
        labels = ", ".join(catalog_labels)
        build.findings.append(findings.NO_GPU_NODES(labels=labels, advice=advice))
    label, value = next(iter(catalog_labels.items()))
    grafana = grafana_of(prometheus)
    dashboards, too_large = plan_dashboards(
        monitoring, grafana, others=not monitors.install and loads_dashboards(facts)
    )
    alerts, unheard = plan_alerts(monitoring, facts, monitors, exporter.collected)
    build.findings += [*too_large, *unheard, *unknown_handlers(build)]
    own_monitor = bool(exporter.monitor and exporter.monitor.objects)
    asked = _asked(settings, monitors, own_monitor=own_monitor)
    asked += [] if prometheus_operators(build) else ["operator"]
    asked += ["dashboards"] if grafana is not None and dashboards.objects else []
    asked += ["alerts"] if monitors.install and alerts.objects else []
    asked += parts_of_sharing(build)
    wanted = vars(plugin) | vars(monitoring) | values_of_sharing(build)
    build.findings += reliance_conflicts(releases, asked, catalog, wanted)
    config_labels = plan_config_labels(build, releases)
    build.findings += judge_cluster(releases, facts, load_combinations())
    if not any(finding.blocks for finding in build.findings):  # blockers name such releases, too
        planned = [ReleaseRef(each.namespace, each.name) for each in releases]
        build.findings += left_releases(settings, facts, planned)
    return StackPlan(
        releases=releases,
        gpu_nodes=known,
        label_nodes=label_nodes,
        label=label,
        label_value=value,
        secret=password_secret(prometheus),
        grafana_user=value_at(grafana, "adminUser") or GRAFANA_USER,
        dashboards=dashboards,
        alerts=alerts,
        counters=exporter.counters,
        exporter_monitor=exporter.monitor,
        receivers=(alertmanager_namespace(prometheus), monitoring.alert_receivers)
        if prometheus and monitoring.alert_receivers
        else None,
        config_labels=config_labels,
        findings=tuple(dict.fromkeys(build.findings)),
    )


def _monitors(build: StackBuilder, *, operator: bool) -> MonitorPlan:
    """How Prometheus finds the exporter. Old GPU Operators create no ServiceMonitor for theirs."""
    wanted, facts = build.settings.monitoring, build.facts
    offered = not operator or build.has_feature(OPERATOR, MONITOR_SWITCH)
    operators = prometheus_operators(build)
    monitors = plan_monitors(
        wanted,
        facts,
        offered=offered,
        adopt=build.access.adopt_releases,
        operated=bool(operators),
    )
    build.findings += monitors.findings
    if not wanted.enabled:
        return monitors
    several = [f"{found.namespace}/{found.name}" for found in facts.running_prometheuses]
    if not monitors.install and len(several) > 1:
        build.findings.append(
            findings.SEVERAL_PROMETHEUSES(used=several[0], others=", ".join(several[1:]))
        )
    if operators and monitors.install:
        build.report_twice(STACK, operators[0], TWO_OPERATORS)
    elif operators and wanted.prometheus == "auto" and not facts.prometheus:
        build.findings.append(findings.PROMETHEUS_MISSING(found=operators[0]))
    if facts.prometheus and not (offered or monitors.install):
        version = build.charts[OPERATOR].version
        build.findings.append(findings.OPERATOR_NOT_SCRAPED(version=version))
    return monitors


def _prometheus(build: StackBuilder, monitors: MonitorPlan) -> Release | None:
    wanted = build.settings.monitoring
    if not monitors.install:
        given = [f"{wanted.prefix}{key}" for key in ONLY_FOR_STACK if getattr(wanted, key)]
        if wanted.enabled:
            instead = 'set monitoring_prometheus = "install"'
            build.report_no_effect(given, STACK, lacks="is not installed", instead=instead)
        return None
    values = chart_values(
        "monitoring/kube-prometheus-stack.yaml",
        scrape_config=monitors.scrape == "scrape-config",
        discovery=monitors.discovery,
        node_port=wanted.node_port,
        grafana_node_port=wanted.grafana_node_port,
        grafana_secret=wanted.grafana_existing_secret or GRAFANA_SECRET,
        admission_webhooks=wanted.admission_webhooks,
        folder_annotation=load_grafana().sidecar.folder,
        alertmanager_secret=CONFIG_SECRET if wanted.alert_receivers else None,
    )
    watched, closed = control_plane_values(build.facts, wanted.values)
    build.findings += closed
    values = merge_mappings(values, watched)
    others = node_exporters(build)
    if others and not any(key in wanted.values for key in NODE_EXPORTER_VALUES):
        build.findings.append(findings.NODE_EXPORTER_THERE(found=others[0]))
        values = merge_mappings(values, {"nodeExporter": {"enabled": False}})
    return build.release(
        STACK, wanted.namespace, values, wanted=wanted.values, crd_version=OPERATOR_VERSION
    )


def _asked(settings: ClusterSettings, monitors: MonitorPlan, *, own_monitor: bool) -> list[str]:
    """The parts of reliances.yaml that the settings request. `own_monitor`: gpufleet creates the
    exporter's ServiceMonitor, not the chart."""
    wanted, plugin = settings.monitoring, settings.device_plugin
    asked = {
        "metrics": monitors.scrape != "none",
        "scrape-config": monitors.scrape == "scrape-config",
        "autoscaling": wanted.autoscaling and not adapter_url(wanted),
        "prometheus-url": wanted.prometheus_url,
        "adapter-url": wanted.autoscaling,
        "adapter-rules": wanted.autoscaling,
        "receivers": wanted.alert_receivers,
        "password": True,
        "grafana-secret": wanted.grafana_existing_secret,
        "node-port": wanted.node_port,
        "grafana-node-port": wanted.grafana_node_port,
        "admission-webhooks": wanted.admission_webhooks,
        "exporter-memory": wanted.exporter_memory,
        "runtime-class": plugin.runtime_class,
        "time-slicing": plugin.time_slicing,
        "node-problems": wanted.node_problems,
        "node-labels": True,
    }
    if monitors.scrape == "service-monitor" and not own_monitor:
        asked["service-monitor" if wanted.scrape == "service-monitor" else "scraped"] = True
    return [name for name, is_asked in asked.items() if is_asked]


def _has_gpu(node: ClusterNode, catalog: ChartCatalog) -> bool:
    """True if the node advertises GPUs, or NFD or GFD labelled it as a GPU node."""
    labels = catalog.gpu_labels.all
    return has_gpus(node.capacity) or bool(node.labels.items() & labels.items())


def _unlabelled(
    settings: ClusterSettings, facts: ClusterFacts, catalog: ChartCatalog, with_gpu: set[str]
) -> tuple[str, ...]:
    """The GPU nodes without any label that the charts select by, if gpufleet sets such a label."""
    if not settings.device_plugin.label_nodes:
        return ()
    wanted = catalog.gpu_labels.labels.items()
    return tuple(
        node.name
        for node in facts.nodes
        if node.name in with_gpu and not node.labels.items() & wanted
    )
