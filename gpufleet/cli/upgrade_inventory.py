"""Reads the clusters and the names of hosts from a run's inventory."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from gpufleet.cli.cluster_view import kubeconfig_of
from gpufleet.cli.deploy import targets_of
from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CLUSTERS
from gpufleet.core.load_settings import load_role
from gpufleet.core.paths import expand_user_path
from gpufleet.core.stopped import Stopped
from gpufleet.helm.settings import ClusterAccess
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.verify.inventory import Target

ACCESS = ("cluster_kubeconfig", "cluster_context")


def accesses_of(inventory: str) -> list[KubeAccess]:
    """The clusters of the inventory: those of its group gpu_cluster, by default the one in the
    user's own kubeconfig, and that of its control plane."""
    return _accesses(targets_of(inventory, ()))


def _accesses(every: Sequence[Target]) -> list[KubeAccess]:
    """The clusters of these targets. Raises Stopped for values of a wrong type."""
    found = [_access_of(target) for target in every if CLUSTERS in target.groups]
    if plane := kubeconfig_of(every):
        found.append((plane, ""))
    paths = {(path and str(expand_user_path(path)), name) for path, name in found}
    return [KubeAccess(*each) for each in sorted(paths)]


def _access_of(target: Target) -> tuple[str, str]:
    """Kubeconfig and context of a cluster, "" for the user's own. Raises Stopped."""
    problems: list[Finding] = []
    mine = {key: value for key, value in target.data.items() if key in ACCESS}
    settings = load_role(ClusterAccess, mine, problems)
    if settings is None:
        raise Stopped(*problems)
    return settings.kubeconfig or "", settings.context or ""


def known_as(target: Target) -> tuple[str, ...]:
    """The names and addresses by which the inventory reaches a host."""
    name = target.name.rpartition("/")[2]  # without the connector: @ssh/gpu-01
    own = (socket.gethostname(),) if name == "@local" else ()
    address = str(target.data.get("ssh_hostname") or "")
    return (name, *own, *([address] if address else []))
