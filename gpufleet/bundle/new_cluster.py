"""The facts of the cluster that `gpufleet cluster create` will make of the hosts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CONTROL_PLANE, NODES_GROUP, ListedHost, kubeconfig_of
from gpufleet.core.load_settings import load_role
from gpufleet.core.paths import expand_user_path
from gpufleet.core.versions import version_tuple
from gpufleet.gpu_stack.dra import load_dra_needs
from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.kube.facts import ClusterFacts, ClusterNode, ServerVersion
from gpufleet.kubernetes.models import Kubernetes
from gpufleet.kubernetes.settings import KubernetesSettings


def is_new(targets: Sequence[ListedHost], settings: ClusterSettings) -> bool:
    """True if the inventory's control plane will write the kubeconfig of this cluster."""
    own, used = kubeconfig_of(targets), settings.cluster.kubeconfig
    if not own or not used:
        return False
    path = expand_user_path(own)
    return path == expand_user_path(used) and not path.exists()


def gpu_images(cluster: Mapping[str, Any], hosts: Iterable[Mapping[str, Any]]) -> set[str]:
    """The images of the pods that use a GPU in `gpufleet verify` and `gpufleet upgrade`."""
    default = UpgradeSettings.model_fields["gpu_image"].default
    keys = [(cluster, "verify_gpu_image"), *((each, "upgrade_gpu_image") for each in hosts)]
    return {str(data.get(key) or default) for data, key in keys}


def new_cluster_facts(
    targets: Sequence[ListedHost], charts: ChartCatalog, known: Kubernetes
) -> tuple[ClusterFacts | None, list[Finding]]:
    """The facts once every host is a Ready node, and GPU nodes have their label. None and the
    problems if the settings of the first control plane are wrong."""
    problems: list[Finding] = []
    plane = next(target for target in targets if CONTROL_PLANE in target.groups)
    settings = load_role(KubernetesSettings, plane.data, problems)
    if settings is None:
        return None, problems
    version = settings.version or known.default
    major, minor = version_tuple(version)[:2]
    full = f"v{version}" if version.count(".") > 1 else f"v{version}.0"
    label = dict([next(iter(charts.gpu_labels.labels.items()))])
    nodes = (
        ClusterNode(target.name, label if NODES_GROUP in target.groups else {}, (), {}, {})
        for target in targets
        if not target.is_cluster
    )
    server = ServerVersion(major, minor, full)
    # charts for minors without this API do not use it
    return ClusterFacts("", server, frozenset({load_dra_needs().api}), tuple(nodes)), []
