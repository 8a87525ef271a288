"""What the parts of a GPU stack's plan have in common. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.gpu_stack.settings import ClusterSettings
from gpufleet.helm.builder import ReleaseBuilder
from gpufleet.helm.chart_choice import load_charts
from gpufleet.kube.facts import ReleaseRef


@dataclass(slots=True, kw_only=True)
class StackBuilder(ReleaseBuilder):
    """A builder that knows what is wanted of every role."""

    settings: ClusterSettings


def our_releases(settings: ClusterSettings) -> tuple[ReleaseRef, ...]:
    """Every release that gpufleet may make of a cluster, wanted or not, in the order of
    installation: each has its chart's name."""
    roles = (settings.device_plugin, settings.monitoring, settings.gpu_operator)
    spaces = {f"{role.prefix}{name}": value for role in roles for name, value in vars(role).items()}
    charts = load_charts().charts
    return tuple(ReleaseRef(spaces[chart.namespace_key], name) for name, chart in charts.items())
