"""Settings of monitoring: keys `monitoring_*`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from gpufleet.core.settings import RoleSettings, Url, Values, must_match
from gpufleet.exporter.settings import Counters
from gpufleet.helm.settings import Name
from gpufleet.monitoring.extra_rules import RulesFiles

NodePort = Annotated[int, Field(ge=1, le=65535)]
Quantity = Annotated[
    str, must_match(r"[0-9]+(\.[0-9]+)?([kMGT]i?)?", "a quantity, such as 512Mi or 50Gi")
]

_LIST = (list, tuple)
# Entries of the exporter's values that gpufleet reads, outer ones first; * is every item of a list.
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "namespaceOverride": str,
    "image": dict,
    "customMetrics": str,
    "arguments": _LIST,
    **{
        path: kind
        for key in ("extraEnv", "extraConfigMapVolumes", "extraVolumeMounts")
        for path, kind in ((key, _LIST), (f"{key}.*", dict))
    },
    "extraConfigMapVolumes.*.configMap": dict,
    "serviceMonitor": dict,
    "serviceMonitor.additionalLabels": dict,
}
_WORDS: Mapping[type | tuple[type, ...], str] = {str: "a text", _LIST: "a list", dict: "a mapping"}


def _check_exporter_values(values: Values) -> Values:
    """None is allowed everywhere but in lists: it removes an entry of the chart's."""
    for path, kind in _KINDS.items():
        for found in _at(values, path.split(".")):
            if not isinstance(found, kind) and (found is not None or path.endswith("*")):
                raise ValueError(f"must have {_WORDS[kind]} as {path.replace('.*', '[]')}")
    return values


def _at(value: Any, keys: Sequence[str]) -> Iterator[Any]:
    """The value at a path of keys."""
    if not keys:
        yield value
    elif keys[0] == "*":
        for item in value or ():
            yield from _at(item, keys[1:])
    elif isinstance(value, Mapping) and keys[0] in value:
        yield from _at(value[keys[0]], keys[1:])


ExporterValues = Annotated[Values, AfterValidator(_check_exporter_values)]


class MonitoringSettings(RoleSettings):
    """GPU metrics: exporter, Prometheus, alerts, dashboards, autoscaling."""

    prefix = "monitoring_"

    enabled: bool = Field(True, description="Install the monitoring components.")
    namespace: Name = Field("monitoring", description="Namespace of Prometheus and the exporter.")
    prometheus: Literal["auto", "install", "existing", "none"] = Field(
        "auto",
        description="`install`: kube-prometheus-stack. `existing`: use the cluster's Prometheus "
        "Operator. `none`: only the exporter. `auto`: use an existing one, else install.",
    )
    scrape: Literal["auto", "service-monitor", "scrape-config"] = Field(
        "auto",
        description="How Prometheus finds the exporter: a ServiceMonitor, or the job gpu-metrics "
        "in additionalScrapeConfigs. `auto`: a ServiceMonitor if an operator serves that kind.",
    )
    monitor_labels: dict[str, str] = Field(
        {}, description="Labels of the ServiceMonitor, as an existing Prometheus selects them."
    )
    node_port: NodePort | None = Field(
        None, description="Node port of Prometheus; NVIDIA's guide uses 30090."
    )
    grafana_node_port: NodePort | None = Field(None, description="Node port of Grafana.")
    grafana_existing_secret: str | None = Field(
        None,
        description="Secret with admin-user and admin-password. Default: a password is generated.",
    )
    dashboards: Literal["auto"] | bool = Field(
        "auto",
        description="Load the GPU dashboards into Grafana, as ConfigMaps for its sidecar. `auto`: "
        "if this role installs Grafana, or another one has that sidecar.",
    )
    dashboard_labels: dict[str, str] = Field(
        {},
        description="Labels of these ConfigMaps, as an existing Grafana's sidecar selects them. "
        "Default: that of kube-prometheus-stack.",
    )
    dashboard_folder: str = Field("GPU", description="Folder of the dashboards in Grafana.")
    exporter: Literal["auto"] | bool = Field(
        "auto", description="Install dcgm-exporter; `auto`: unless the cluster has an exporter."
    )
    exporter_memory: Quantity | None = Field(
        None, description="Memory limit of the exporter. Default: by the number of GPUs per node."
    )
    counters: Counters | None = Field(
        None,
        description="What to collect, as lines `DCGM field, type, help`. Default: gpufleet's own "
        "list for that exporter, which the alerts and dashboards require.",
    )
    alerts: bool = Field(
        True, description="Create the GPU alerts, if the cluster has the Prometheus Operator."
    )
    extra_rules: RulesFiles = Field(
        [],
        description="Rules files of yours, with `groups` as Prometheus reads them: their path from "
        "the working directory, or a list. They become a PrometheusRule of their own, if the "
        "cluster has the Prometheus Operator.",
    )
    rule_labels: dict[str, str] = Field(
        {}, description="Labels of the alert rules, as an existing Prometheus selects them."
    )
    runbook_base: Url | None = Field(
        None,
        description="URL of a folder with docs/runbooks: `runbook_url` of each alert is "
        "BASE/NAME.md. Default: alerts have no link.",
    )
    alert_receivers: Name | None = Field(
        None,
        description="Secret in Alertmanager's namespace whose key receivers.yaml holds its "
        "receivers, one of them named default. Default: the chart's configuration.",
    )
    admission_webhooks: bool = Field(
        False, description="Let the operator validate rules when they are created."
    )
    autoscaling: bool = Field(
        False, description="Install prometheus-adapter, so that autoscalers can use GPU metrics."
    )
    prometheus_url: Url | None = Field(
        None,
        description="Prometheus that the adapter queries, as pods reach it. Default: the installed "
        "or existing one.",
    )
    node_problems: bool = Field(
        False,
        description="Install node-problem-detector with GPU checks, which set conditions and "
        "events on nodes.",
    )
    values: Values = Field(
        {}, description="Values of kube-prometheus-stack; they override the defaults."
    )
    exporter_values: ExporterValues = Field(
        {}, description="Values of dcgm-exporter; they override the defaults."
    )
    adapter_values: Values = Field(
        {}, description="Values of prometheus-adapter; they override the defaults."
    )
    node_problems_values: Values = Field(
        {}, description="Values of node-problem-detector; they override the defaults."
    )
