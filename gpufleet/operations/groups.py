"""The groups of an inventory that deploys go by."""

from __future__ import annotations

from pyinfra.api import Host

CLUSTERS = "gpu_cluster"  # each host of it is a cluster, reached from this machine
NODES = "gpu_nodes"


def is_cluster(host: Host) -> bool:
    """Whether the inventory has it as a cluster: then nothing may be installed on the host."""
    return CLUSTERS in host.groups and NODES not in host.groups
