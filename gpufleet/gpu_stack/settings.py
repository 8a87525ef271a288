"""Settings of a cluster: keys `device_plugin_*` and `gpu_operator_*`, and the list of its roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from gpufleet.core.accepted import AcceptedFindings
from gpufleet.core.findings import Finding
from gpufleet.core.findings import settings as findings
from gpufleet.core.load_settings import load_role, unknown_keys
from gpufleet.core.secrets import register_secrets_of
from gpufleet.core.settings import RoleSettings, Values
from gpufleet.helm.settings import ClusterAccess, Name
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.monitoring.settings import MonitoringSettings
from gpufleet.role.listing import node_settings


class DevicePluginSettings(RoleSettings):
    """How GPUs are advertised as resources for pods."""

    prefix = "device_plugin_"

    enabled: Literal["auto"] | bool = Field(
        "auto",
        description="Install the device plugin; `auto`: unless the cluster has one, or its nodes "
        "advertise GPUs without it.",
    )
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
        description="Label nodes that report GPUs, or that are in gpu_nodes of the inventory, with "
        "nvidia.com/gpu.present instead of running NFD.",
    )
    mig_strategy: Literal["none", "single", "mixed"] = Field(
        "none", description="How MIG devices are advertised."
    )
    time_slicing: int | None = Field(
        None, ge=2, le=64, description="Advertise each GPU this many times; memory is not isolated."
    )
    runtime_class: str | None = Field(
        None,
        description="RuntimeClass of plugin and exporter, required where nvidia is not the "
        "default runtime.",
    )
    values: Values = Field(
        {}, description="Values of the plugin's chart; they override the defaults."
    )
    nfd_values: Values = Field({}, description="Values of NFD's chart; they override the defaults.")
    dra_namespace: Name = Field(
        "dra-driver-nvidia-gpu", description="Namespace of the DRA driver (`gpu_sharing`)."
    )
    dra_values: Values = Field(
        {}, description="Values of the DRA driver's chart; they override the defaults."
    )


class GpuOperatorSettings(RoleSettings):
    """NVIDIA's operator, with cluster_stack = "gpu-operator"."""

    prefix = "gpu_operator_"

    namespace: Name = Field("gpu-operator", description="Namespace of the operator.")
    driver: Literal["auto"] | bool = Field(
        "auto",
        description="Let it install drivers; `auto`: only if no node has one, then as the existing "
        "release does.",
    )
    toolkit: Literal["auto"] | bool = Field(
        "auto", description="Let it install the container toolkit; `auto`: as with the driver."
    )
    values: Values = Field(
        {}, description="Values of the operator's chart; they override the defaults."
    )


CLUSTER_ROLES: tuple[type[RoleSettings], ...] = (
    ClusterAccess,
    DevicePluginSettings,
    MonitoringSettings,
    GpuOperatorSettings,
)
# a misspelt key is reported wherever it is set
ROLES: tuple[type[RoleSettings], ...] = (
    *node_settings(),
    *CLUSTER_ROLES,
    UpgradeSettings,
    AcceptedFindings,
)


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The settings of one cluster, one model per role."""

    cluster: ClusterAccess
    device_plugin: DevicePluginSettings
    monitoring: MonitoringSettings
    gpu_operator: GpuOperatorSettings


def load_cluster_settings(
    data: Mapping[str, Any], given: Collection[str] = ()
) -> tuple[ClusterSettings | None, list[Finding]]:
    """The typed settings of a cluster in `data`, or None and all problems that prevent them.
    `given`: as in unknown_keys."""
    register_secrets_of(data)
    problems = unknown_keys(data, ROLES, given)
    cluster = load_role(ClusterAccess, data, problems)
    device_plugin = load_role(DevicePluginSettings, data, problems)
    monitoring = load_role(MonitoringSettings, data, problems)
    gpu_operator = load_role(GpuOperatorSettings, data, problems)
    load_role(UpgradeSettings, data, problems)
    load_role(AcceptedFindings, data, problems)
    problems += _contradictions(cluster) if cluster else []
    if problems or not (cluster and device_plugin and monitoring and gpu_operator):
        return None, problems
    return ClusterSettings(cluster, device_plugin, monitoring, gpu_operator), []


def _contradictions(cluster: ClusterAccess) -> list[Finding]:
    """Findings about settings of the access to a cluster that contradict one another."""
    found = []
    folder, repository = cluster.chart_dir, cluster.chart_repository
    if folder and isinstance(repository, str):
        found.append(
            findings.CONTRADICTION(
                first=f'cluster_chart_dir = "{folder}"',
                second=f'cluster_chart_repository = "{repository}"',
                problem="both set the source of all charts; to override single charts, use a "
                "mapping in cluster_chart_repository",
            )
        )
    if not cluster.chart_plain_http:
        urls = repository.values() if isinstance(repository, dict) else [repository or ""]
        found += [
            findings.CONTRADICTION(
                first=f'cluster_chart_repository = "{url}"',
                second="cluster_chart_plain_http = False",
                problem="without TLS, charts can be modified in transit; use https://, or allow "
                "it on a network that you trust",
            )
            for url in urls
            if url.startswith("http://")
        ]
    return found
