"""The problems of settings that no run has read: of hosts and clusters that it cannot reach."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CLUSTERS, NODES
from gpufleet.gpu_stack.settings import load_cluster_settings
from gpufleet.node.settings import load_settings


def settings_problems(groups: Collection[str], data: Mapping[str, Any]) -> list[Finding]:
    """What is wrong with the settings of a host, of a cluster, or of what is both by its groups."""
    found: list[Finding] = []
    if CLUSTERS not in groups or NODES in groups:
        found += load_settings(data)[1]
    if CLUSTERS in groups:
        found += load_cluster_settings(data)[1]
    return list(dict.fromkeys(found))
