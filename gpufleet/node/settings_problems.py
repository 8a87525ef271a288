"""The problems of settings that no run has read: of hosts and clusters that it cannot reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CLUSTERS, NODES
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.node.settings import load_settings


def settings_problems(groups: Collection[str], data: Mapping[str, Any]) -> list[Finding]:
    """What is wrong with the settings of a host, or of a cluster: that is by its `groups`."""
    is_cluster = CLUSTERS in groups and NODES not in groups
    load = load_cluster_settings if is_cluster else load_settings
    return load(data)[1]
