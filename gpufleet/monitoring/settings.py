"""Settings of monitoring: keys `monitoring_*`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gpufleet.core.settings import RoleSettings, Url, matching
from gpufleet.exporter.settings import Counters
from gpufleet.helm.settings import Name, Values

NodePort = Annotated[int, Field(ge=1, le=65535)]
Quantity = Annotated[
    str, matching(r"[0-9]+(\.[0-9]+)?([kMGT]i?)?", "a quantity, such as 512Mi or 50Gi")
]


class MonitoringSettings(RoleSettings):
    """Metrics of GPUs and who collects them."""

    prefix = "monitoring_"

    enabled: bool = Field(True, description="Install anything of it at all.")
    namespace: Name = Field("monitoring", description="Namespace of Prometheus and the exporter.")
    prometheus: Literal["auto", "install", "existing", "none"] = Field(
        "auto",
        description="`install`: kube-prometheus-stack. `existing`: join a Prometheus Operator that "
        "is there. `none`: only the exporter. `auto`: join where there is one, else install.",
    )
    scrape: Literal["auto", "service-monitor", "scrape-config"] = Field(
        "auto",
        description="How Prometheus finds the exporter: a ServiceMonitor, or the job gpu-metrics "
        "in additionalScrapeConfigs. `auto`: a ServiceMonitor wherever an operator serves it.",
    )
    monitor_labels: dict[str, str] = Field(
        {}, description="Labels of the ServiceMonitor, as an existing Prometheus selects them."
    )
    node_port: NodePort | None = Field(
        None, description="Offer Prometheus on this port of the nodes; NVIDIA's guide has 30090."
    )
    grafana_node_port: NodePort | None = Field(
        None, description="Offer Grafana on this port of the nodes."
    )
    grafana_existing_secret: str | None = Field(
        None,
        description="Secret with admin-user and admin-password. Default: a password is generated.",
    )
    dashboards: Literal["auto"] | bool = Field(
        "auto",
        description="Load the dashboards of GPUs into Grafana, as ConfigMaps that its sidecar "
        "finds. `auto`: where Grafana is installed with this.",
    )
    dashboard_labels: dict[str, str] = Field(
        {},
        description="Labels of these ConfigMaps, as an existing Grafana's sidecar selects them. "
        "Default: as kube-prometheus-stack has it.",
    )
    dashboard_folder: str = Field("GPU", description="Folder of the dashboards in Grafana.")
    exporter: bool = Field(True, description="Install dcgm-exporter.")
    exporter_memory: Quantity | None = Field(
        None, description="Memory limit of the exporter. Default: by the GPUs of a node."
    )
    counters: Counters | None = Field(
        None,
        description="What to collect, as lines `DCGM field, type, help`. Default: gpufleet's own "
        "list for that exporter, which the alerts and dashboards need.",
    )
    alerts: bool = Field(
        True, description="Write the alerts about GPUs, where the Prometheus Operator is there."
    )
    rule_labels: dict[str, str] = Field(
        {}, description="Labels of the alerts' rules, as an existing Prometheus selects them."
    )
    runbook_base: Url | None = Field(
        None,
        description="URL of the folder where docs/runbooks can be read by whoever gets an alert: "
        "`runbook_url` of each alert is BASE/NAME.md. Default: alerts have no link.",
    )
    alert_receivers: Name | None = Field(
        None,
        description="Secret in the same namespace whose key receivers.yaml holds Alertmanager's "
        "receivers, one of them named default. Default: Alertmanager is left as the chart has it.",
    )
    admission_webhooks: bool = Field(
        False, description="Let the operator check rules when they are written."
    )
    autoscaling: bool = Field(
        False,
        description="Install prometheus-adapter, so that autoscalers can use metrics of GPUs.",
    )
    prometheus_url: Url | None = Field(
        None,
        description="Prometheus that the adapter asks, as pods reach it. Default: the one that is "
        "installed or joined.",
    )
    node_problems: bool = Field(
        False,
        description="Install node-problem-detector with checks of GPUs, so that nodes have "
        "conditions and events about them.",
    )
    values: Values = Field({}, description="Values of kube-prometheus-stack, over our own.")
    exporter_values: Values = Field({}, description="Values of dcgm-exporter, over our own.")
    adapter_values: Values = Field({}, description="Values of prometheus-adapter, over our own.")
    node_problems_values: Values = Field(
        {}, description="Values of node-problem-detector, over our own."
    )
