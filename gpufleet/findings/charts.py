"""Findings about charts and Kubernetes versions: GF801 to GF809."""

from __future__ import annotations

from gpufleet.findings import Kind, Severity

CHART_DOES_NOT_FIT = Kind(
    "GF801",
    Severity.BLOCKER,
    "A chart does not fit the cluster",
    "{chart} {version} cannot be installed on Kubernetes {minor}: {error}.",
    "{last} is the last that fits there: remove the version from cluster_chart_versions or pin "
    "that one{way}.",
)
CHART_MADE_TO_FIT = Kind(
    "GF802",
    Severity.WARNING,
    "A chart is made to fit",
    "{chart} {version} goes on Kubernetes {minor} without what that does not know: {error}.",
    'Set cluster_charts = "careful" for a version that fits as it is.',
)
CHART_UNDOCUMENTED = Kind(
    "GF803",
    Severity.WARNING,
    "A chart is outside what upstream documents",
    "{chart} {version} is documented for Kubernetes {documented}, not for {minor}.",
    'Its API may take it all the same; cluster_charts = "careful" stays inside where it can.',
)
CHART_UNKNOWN = Kind(
    "GF804",
    Severity.WARNING,
    "A chart is newer than the catalog",
    "{chart} {version} is newer than {newest}, the newest that the catalog knows.",
    "Try it on a test cluster first: gpufleet sandbox cluster up.",
)
UNKNOWN_KUBERNETES = Kind(
    "GF805",
    Severity.WARNING,
    "The catalog does not know this Kubernetes",
    "Kubernetes {minor} is outside {first} to {last}, which the catalog knows.",
    "What fits {nearest} is chosen; try it on a test cluster first, or update gpufleet.",
)
KUBERNETES_ENDED = Kind(
    "GF806",
    Severity.INFO,
    "Kubernetes is at its end of life",
    "Kubernetes {minor} has had no fixes since {date}.",
    "Upgrade the cluster when its owners can; the charts chosen here still fit it.",
)
