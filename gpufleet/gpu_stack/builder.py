"""What the parts of a GPU stack's plan have in common. Pure."""

from __future__ import annotations

from collections.abc import Mapping
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
from gpufleet.helm.chart_choice import ChartChoice
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.kube.facts import ClusterFacts, ReleaseRef


@dataclass(slots=True, kw_only=True)
class StackBuilder(ReleaseBuilder):
    """A builder that knows what is wanted of every role."""

    settings: ClusterSettings

    @classmethod
    def of(
        cls,
        settings: ClusterSettings,
        facts: ClusterFacts,
        catalog: ChartCatalog,
        charts: Mapping[str, ChartChoice],
        gpu_nodes: tuple[str, ...],
    ) -> StackBuilder:
        """A builder without findings yet."""
        return cls(
            access=settings.cluster,
            ours={ref.name: ref for ref in our_releases(settings)},
            facts=facts,
            catalog=catalog,
            charts=charts,
            gpu_nodes=gpu_nodes,
            settings=settings,
        )


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
