"""What the parts of a GPU stack's plan have in common. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.builder import (
    ADAPTER,
    DETECTOR,
    EXPORTER,
    NFD,
    OPERATOR,
    PLUGIN,
    STACK,
    ReleaseBuilder,
)
from gpufleet.kube.facts import ReleaseRef


@dataclass(slots=True, kw_only=True)
class StackBuilder(ReleaseBuilder):
    """A builder that knows what is wanted of every role."""

    settings: ClusterSettings


def our_releases(settings: ClusterSettings) -> tuple[ReleaseRef, ...]:
    """Every release that gpufleet may make of a cluster, wanted or not: each has its chart's
    name."""
    plugin, monitoring = settings.device_plugin, settings.monitoring.namespace
    spaces = {
        STACK: monitoring,
        NFD: plugin.nfd_namespace,
        PLUGIN: plugin.namespace,
        EXPORTER: monitoring,
        ADAPTER: monitoring,
        DETECTOR: monitoring,
        OPERATOR: settings.gpu_operator.namespace,
    }
    return tuple(ReleaseRef(space, name) for name, space in spaces.items())
