"""The groups of an inventory that deploys go by."""

from __future__ import annotations

from pyinfra.api import Host

from gpufleet.core.inventory import CLUSTERS, NODES


def is_cluster(host: Host) -> bool:
    """Whether the inventory lists it as a cluster: then nothing is installed on the host."""
    return CLUSTERS in host.groups and NODES not in host.groups
