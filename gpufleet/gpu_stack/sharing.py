"""GPUs that several pods share, and what makes the exporter report each of these pods. Pure.

Without the variable, one of the pods of a GPU has metrics; autoscalers and alerts miss the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpufleet.core.versions import version_tuple
from gpufleet.exporter.counters import load_counters
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.builder import StackBuilder
from gpufleet.gpu_stack.counters import exporter_version
from gpufleet.helm.builder import EXPORTER

VARIABLE = "KUBERNETES_VIRTUAL_GPUS"
# Label of GPU feature discovery: none, time-slicing or mps.
# Source: https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md
STRATEGY = "nvidia.com/gpu.sharing-strategy"


def measuring_shares(build: StackBuilder) -> dict[str, Any]:
    """Values of our exporter, above the user's, whose variables they contain."""
    theirs = build.settings.monitoring.exporter_values
    version = exporter_version(load_counters(), build.charts[EXPORTER].version, theirs)
    since = build.catalog.charts[EXPORTER].features.get(VARIABLE)
    shared = sharing_variables(build, version, since, theirs.get("extraEnv"))
    return {"extraEnv": shared} if shared else {}


def sharing_variables(
    build: StackBuilder, version: str, since: str | None, theirs: Iterable[Mapping[str, Any]] | None
) -> list[dict[str, Any]]:
    """The variables of an exporter of that version whose nodes share GPUs: the user's, and ours;
    [] where nothing is to be said. `since`: the first version that has all GPUs with ours."""
    given = [dict(each) for each in theirs or ()]
    if not _are_shared(build) or any(each.get("name") == VARIABLE for each in given):
        return []
    if since is None or not version or version_tuple(version) < version_tuple(since):
        build.findings.append(findings.SHARES_NOT_MEASURED(version=version or "of another tag"))
        return []
    return [*given, {"name": VARIABLE, "value": "true"}]


def _are_shared(build: StackBuilder) -> bool:
    """By the settings of the plugin, by its own values, or by labels of nodes."""
    plugin = build.settings.device_plugin
    files = (plugin.values.get("config") or {}).get("map") or {}
    asked = bool(plugin.time_slicing) or any("sharing:" in str(text) for text in files.values())
    return asked or any(
        node.labels.get(STRATEGY, "none") not in ("none", "") for node in build.facts.nodes
    )
