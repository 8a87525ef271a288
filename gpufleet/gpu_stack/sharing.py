"""Makes the exporter report each pod of a GPU that several pods share. Pure.

Without the variable, only one pod of a GPU has metrics; autoscalers and alerts miss the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from gpufleet.core.merge import value_at
from gpufleet.core.versions import version_tuple
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.counters import exporter_version
from gpufleet.gpu_stack.model import StackBuilder
from gpufleet.helm.builder import EXPORTER, OPERATOR

SHARING_VARIABLE = "KUBERNETES_VIRTUAL_GPUS"
# Label of GPU feature discovery: none, time-slicing or mps.
# Source: https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md
STRATEGY = "nvidia.com/gpu.sharing-strategy"


def measuring_shares(build: StackBuilder) -> dict[str, Any]:
    """Values for our exporter that override the user's; they contain the user's variables."""
    given = build.settings.monitoring.exporter_values.get("extraEnv")
    shared = sharing_variables(build, EXPORTER, exporter_version(build), given)
    return {"extraEnv": shared} if shared else {}


def sharing_variables(
    build: StackBuilder, chart: str, version: str, theirs: Any
) -> list[dict[str, Any]]:
    """The user's variables and ours for an exporter of a chart on nodes that share GPUs, or [] if
    ours is not needed. `version`: of the exporter or its chart; the catalog has the first one that
    reports all GPUs with ours."""
    given = theirs or []
    if not isinstance(given, list | tuple) or not all(isinstance(one, Mapping) for one in given):
        return []  # the API server rejects these
    shared = _are_shared(build)
    if shared is False or any(each.get("name") == SHARING_VARIABLE for each in given):
        return []
    since = build.catalog.charts[chart].features.get(SHARING_VARIABLE)
    if since is None or not version or version_tuple(version) < version_tuple(since):
        if shared:
            build.findings.append(findings.SHARES_NOT_MEASURED(version=version or "of another tag"))
        return []
    return [*map(dict, given), {"name": SHARING_VARIABLE, "value": "true"}]


def _are_shared(build: StackBuilder) -> bool | None:
    """True if the plugin's settings or values, or labels of nodes, say so. None if only a user's
    ConfigMap can say so: labels appear after the first run and would restart the exporters."""
    plugin = build.settings.device_plugin
    operator = build.settings.cluster.stack == OPERATOR
    config = (
        value_at(build.settings.gpu_operator.values, "devicePlugin.config")
        if operator
        else value_at(plugin.values, "config")
    )
    files = value_at(config, "data" if operator else "map")
    texts = files.values() if isinstance(files, Mapping) else ()
    labels = [node.labels.get(STRATEGY, "none") for node in build.facts.nodes]
    if build.sharing.shares or any(map(_shares, texts)) or set(labels) - {"none", ""}:
        return True
    named = value_at(config, "name") and not (operator and texts)  # its chart creates that one
    return None if named else False


def _shares(text: Any) -> bool:
    """True if a configuration of the plugin shares GPUs."""
    try:
        return bool(value_at(yaml.safe_load(str(text)), "sharing"))
    except yaml.YAMLError:
        return False  # the plugin does not start with it
