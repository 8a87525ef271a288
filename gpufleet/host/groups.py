"""The groups of an inventory that deploys go by."""

from __future__ import annotations

from pyinfra.api import Host

from gpufleet.core.inventory import CLUSTERS, NODES, cluster_named_twice


def is_cluster(host: Host) -> bool:
    """Whether the inventory lists it as a cluster: then nothing is installed on the host."""
    return CLUSTERS in host.groups and NODES not in host.groups


def named_twice(host: Host) -> bool:
    """Whether the inventory has more than one cluster of its name."""
    return cluster_named_twice(host.name, host.groups)


__all__ = ["CLUSTERS", "NODES", "is_cluster", "named_twice"]
