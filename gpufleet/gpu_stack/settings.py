"""Settings of a cluster: keys `cluster_*`, `device_plugin_*`, `monitoring_*`, `gpu_operator_*`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gpufleet.core.settings import RoleSettings, Url, matching
from gpufleet.exporter.settings import Counters

CHARTS = (
    "kube-prometheus-stack",
    "node-feature-discovery",
    "nvidia-device-plugin",
    "dcgm-exporter",
    "prometheus-adapter",
    "node-problem-detector",
    "gpu-operator",
)


def _text_only(value: Any) -> Any:
    if isinstance(value, int | float):
        raise ValueError(f"is a number ({value!r}); write versions in quotes")
    return value


def _known_charts(by_chart: dict[str, str]) -> dict[str, str]:
    for name in by_chart:
        if name not in CHARTS:
            raise ValueError(f"names the chart {name!r}; there are {', '.join(CHARTS)}")
    return by_chart


def _no_login(value: str) -> str:
    if "@" in value.split("://")[1]:
        raise ValueError("must not hold a password; cluster_chart_logins names a file for it")
    return value.rstrip("/")


ChartVersion = Annotated[
    str,
    BeforeValidator(_text_only),
    matching(r"v?[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]*", "a version, such as v25.3.0 or 0.17.1"),
]
ChartVersions = Annotated[dict[str, ChartVersion], AfterValidator(_known_charts)]
ChartRepository = Annotated[
    str,
    matching(
        r"(https?|oci)://[^\s'\"`$\\?#]+",
        "a URL of https, http or oci, such as oci://registry.example.com/charts",
    ),
    AfterValidator(_no_login),
]
ChartRepositories = Annotated[dict[str, ChartRepository], AfterValidator(_known_charts)]
Name = Annotated[
    str,
    matching(
        r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
        "a name in Kubernetes: at most 63 of a to z, 0 to 9 and -, which is neither first nor last",
    ),
]
NodePort = Annotated[int, Field(ge=1, le=65535)]
Quantity = Annotated[
    str, matching(r"[0-9]+(\.[0-9]+)?([kMGT]i?)?", "a quantity, such as 512Mi or 50Gi")
]
Values = dict[str, Any]


class ClusterAccess(RoleSettings):
    """Which cluster, and how charts for it are chosen."""

    prefix = "cluster_"

    kubeconfig: str | None = Field(
        None, description="Path of the kubeconfig. Default: $KUBECONFIG, then ~/.kube/config."
    )
    context: str | None = Field(None, description="Context in it. Default: its current one.")
    uid: str | None = Field(
        None,
        description="uid of the namespace kube-system: no other cluster is touched, whatever the "
        "kubeconfig says.",
    )
    lock_timeout: int = Field(
        600,
        ge=0,
        le=7200,
        description="Seconds to wait for another run of gpufleet that is at work on the cluster. "
        "One that was killed without a trace is gone after 30.",
    )
    charts: Literal["careful", "newest"] = Field(
        "careful",
        description="`careful`: the versions that upstream documents for this Kubernetes and that "
        "were tried on it. `newest`: the newest that its API takes, with values that make it fit.",
    )
    chart_versions: ChartVersions = Field(
        {}, description="Versions that you want instead: chart -> version."
    )
    chart_dir: str | None = Field(
        None, description="Folder of chart archives, CHART-VERSION.tgz, instead of repositories."
    )
    chart_repository: ChartRepository | ChartRepositories | None = Field(
        None,
        description="Where charts come from instead of upstream: the https:// URL of a repository, "
        "or oci://REGISTRY/FOLDER, which has each chart under its name. As a mapping, chart -> "
        "repository, for those charts alone.",
    )
    chart_logins: str | None = Field(
        None,
        description="Path of a file with names and passwords for repositories, in netrc's form, "
        "readable by its owner alone.",
    )
    chart_plain_http: bool = Field(
        False,
        description="Talk to OCI registries without TLS, and take http:// repositories, where "
        "yours have none: whoever is between can change what is installed.",
    )
    stack: Literal["device-plugin", "gpu-operator"] = Field(
        "device-plugin",
        description="`device-plugin`: device plugin and exporter as releases of their own. "
        "`gpu-operator`: NVIDIA's operator brings both.",
    )
    timeout: int = Field(
        600, ge=10, le=7200, description="Seconds to wait until a release is ready."
    )
    helm: str | None = Field(
        None, description="Path of the helm program. Default: the one on PATH, else it is fetched."
    )
    helm_url: Url | None = Field(
        None,
        description="Folder from which helm is fetched where it is missing. Default: the site of "
        "its project. The checksum is the same.",
    )
    force_conflicts: bool = Field(
        False, description="Take back fields that somebody else changed (helm 4)."
    )
    adopt_releases: bool = Field(
        False,
        description="Take over releases of our names and charts that something else made, although "
        "values of theirs get lost.",
    )


class DevicePluginSettings(RoleSettings):
    """How GPUs become resources that pods can ask for."""

    prefix = "device_plugin_"

    namespace: Name = Field("kube-system", description="Namespace of the plugin.")
    nfd: Literal["auto"] | bool = Field(
        "auto",
        description="Install node-feature-discovery; `auto`: unless the cluster has one or "
        "`device_plugin_label_nodes` replaces it.",
    )
    nfd_namespace: Name = Field("node-feature-discovery", description="Namespace of NFD.")
    gfd: bool = Field(True, description="Run gpu-feature-discovery, which labels nodes by GPU.")
    label_nodes: bool = Field(
        False,
        description="Label nodes that report GPUs, or that the inventory names in gpu_nodes, with "
        "nvidia.com/gpu.present instead of running NFD.",
    )
    mig_strategy: Literal["none", "single", "mixed"] = Field(
        "none", description="How MIG devices are offered."
    )
    time_slicing: int | None = Field(
        None, ge=2, le=64, description="Offer each GPU this many times; nobody's memory is safe."
    )
    runtime_class: str | None = Field(
        None,
        description="RuntimeClass of plugin and exporter, needed where nvidia is not the default "
        "runtime.",
    )
    values: Values = Field({}, description="Values of the plugin's chart, over our own.")
    nfd_values: Values = Field({}, description="Values of NFD's chart, over our own.")


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


class GpuOperatorSettings(RoleSettings):
    """NVIDIA's operator, where cluster_stack asks for it."""

    prefix = "gpu_operator_"

    namespace: Name = Field("gpu-operator", description="Namespace of the operator.")
    driver: Literal["auto"] | bool = Field(
        "auto",
        description="Let it install drivers; `auto`: where no node has one of its own, and then as "
        "it is installed.",
    )
    toolkit: Literal["auto"] | bool = Field(
        "auto", description="Let it install the container toolkit; `auto`: as with the driver."
    )
    values: Values = Field({}, description="Values of the operator's chart, over our own.")
