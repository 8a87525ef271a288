"""Which counters dcgm-exporter collects in a cluster, and how it gets their list. Pure.

A chart with the value customMetrics puts a list into a ConfigMap of its own and mounts it. An older
one mounts ConfigMaps, but creates none with a list: gpufleet creates it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpufleet.core.findings import Finding
from gpufleet.exporter.counters import Choosing, CounterCatalog
from gpufleet.exporter.counters_file import counters_csv, fields_of, own_fields, too_new
from gpufleet.gpu_stack import findings
from gpufleet.helm.builder import EXPORTER
from gpufleet.helm.chart_choice import has_feature
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.kube.objects import ObjectSet
from gpufleet.monitoring.settings import MonitoringSettings

PART = "exporter-counters"
CONFIG_MAP = "gpufleet-exporter-counters"
FOLDER, FILE = "/etc/gpufleet", "counters.csv"
CHECKSUM = "gpufleet/counters"  # annotation of the exporter's pods: they restart with the list
VALUE, VOLUMES, MOUNTS = "customMetrics", "extraConfigMapVolumes", "extraVolumeMounts"

Values = Mapping[str, Any]
Way = Literal["value", "config-map", "theirs", "none"]


@dataclass(frozen=True, slots=True)
class CounterPlan:
    """How the exporter gets its list of counters.

    `values`: of the chart, below the user's. `lists`: values above the user's, whose entries they
    contain. `text`: of our ConfigMap, None if none is needed. `collected`: the fields, None if
    unknown: the user's values name a list that gpufleet does not read.
    """

    collected: frozenset[str] | None
    values: Values = field(default_factory=dict)
    lists: Values = field(default_factory=dict)
    text: str | None = None
    findings: tuple[Finding, ...] = ()

    def objects(self, wanted: MonitoringSettings) -> ObjectSet:
        """Our ConfigMap, in the namespace of the chart's objects; none if none is needed."""
        namespace = str(wanted.exporter_values.get("namespaceOverride") or wanted.namespace)
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        maps = () if self.text is None else (_config_map(self.text),)
        return ObjectSet(namespace, path, PART, maps)


def plan_counters(
    charts: ChartCatalog, counters: CounterCatalog, version: str, wanted: MonitoringSettings
) -> CounterPlan:
    """The plan for `version` of the exporter's chart. The user's list and values win over ours."""
    theirs = wanted.exporter_values
    exporter = _exporter_version(counters, version, theirs)
    takes = has_feature(charts, EXPORTER, version, VALUE)
    asked = theirs[VALUE] if takes and VALUE in theirs else wanted.counters
    text = str(asked) if asked else counters_csv(counters, exporter)
    way, why = _way(charts, counters.choosing, version, theirs)
    if way == "value" and VALUE in theirs and not asked:
        way, why = "none", f"{VALUE} in monitoring_exporter_values is empty"
    if way == "theirs":
        return CounterPlan(None, findings=_not_passed(version, wanted, why))
    if way == "none" or text is None:
        collected = own_fields(counters, exporter)
        return CounterPlan(collected, findings=_not_passed(version, wanted, why))
    plan = _passed(way, text, theirs)
    unknown = too_new(counters, exporter, plan.collected or ()) if asked else {}
    if not unknown:
        return plan
    names = ", ".join(f"{name} (since {since})" for name, since in unknown.items())
    found = findings.COUNTERS_UNKNOWN(version=exporter, names=names)
    return CounterPlan(plan.collected, plan.values, plan.lists, plan.text, (found,))


def _way(charts: ChartCatalog, choosing: Choosing, version: str, theirs: Values) -> tuple[Way, str]:
    """How the list reaches the exporter, and why it does not."""
    own = _list_of_theirs(choosing, theirs)
    if own:
        return "theirs", f"{own} in monitoring_exporter_values names another list"
    mounting = VOLUMES in theirs or MOUNTS in theirs  # null too: it removes the chart's own
    if has_feature(charts, EXPORTER, version, VALUE) and not mounting:
        return "value", ""
    if not has_feature(charts, EXPORTER, version, VOLUMES):
        since = charts.charts[EXPORTER].features[VOLUMES]
        return "none", f"its chart mounts ConfigMaps from {since} on"
    if "arguments" in theirs:
        return "none", "arguments in monitoring_exporter_values replace the one that names the list"
    return "config-map", ""


def _passed(way: Way, text: str, theirs: Values) -> CounterPlan:
    checksum = {"podAnnotations": {CHECKSUM: digest(text)}}
    collected = fields_of(text)
    if way == "value":
        return CounterPlan(collected, {VALUE: text, **checksum})
    volume = {"name": CONFIG_MAP, "configMap": {"name": CONFIG_MAP}}
    mount = {"name": CONFIG_MAP, "mountPath": FOLDER, "readOnly": True}
    lists = {
        VOLUMES: [*(theirs.get(VOLUMES) or ()), volume],
        MOUNTS: [*(theirs.get(MOUNTS) or ()), mount],
    }
    values = {"arguments": ["-f", f"{FOLDER}/{FILE}"], **checksum}
    return CounterPlan(collected, values, lists, text)


def _list_of_theirs(choosing: Choosing, theirs: Values) -> str:
    """The value by which the user names a list of their own; "" if none does."""
    for key in ("arguments", "extraEnv", VOLUMES, MOUNTS):
        if not isinstance(theirs.get(key) or [], list):
            return key  # left as it is: helm reports it
    if any(_names_a_list(choosing, word) for word in _options(theirs.get("arguments"))):
        return "arguments"
    inside = f"{choosing.folder}/"
    if any(f"{path}/".startswith(inside) for path in _all(theirs, MOUNTS, "mountPath")):
        return MOUNTS
    names = _all(theirs, "extraEnv", "name")
    return "extraEnv" if names & set(choosing.variables) else ""


def _all(theirs: Values, key: str, inner: str) -> set[Any]:
    """The value of `inner` in every entry of a list."""
    return {entry.get(inner) for entry in theirs.get(key) or () if isinstance(entry, Mapping)}


def _options(arguments: list[Any] | None) -> list[tuple[str, str]]:
    """The options of a command line with their values: -f PATH, --collectors=PATH."""
    words = [str(word) for word in arguments or ()]
    found = []
    for number, word in enumerate(words):
        name, _, value = word.partition("=")
        if name.startswith("-"):
            after = words[number + 1] if number + 1 < len(words) else ""
            found.append((name.lstrip("-"), value or after))
    return found


def _names_a_list(choosing: Choosing, option: tuple[str, str]) -> bool:
    """Whether an option names a list that neither the image nor the chart has."""
    name, value = option
    if name in choosing.map_options:
        return True
    return name in choosing.file_options and not value.startswith(f"{choosing.folder}/")


def _exporter_version(counters: CounterCatalog, chart: str, theirs: Values) -> str:
    """The exporter's version: of the image that the user's values name, else the chart's."""
    image = theirs.get("image")
    tag = image.get("tag") if isinstance(image, Mapping) else None
    found = re.match(counters.choosing.tag, str(tag or ""))
    return found[1] if found else chart


def _not_passed(version: str, wanted: MonitoringSettings, why: str) -> tuple[Finding, ...]:
    if not (wanted.counters and why):
        return ()
    return (findings.COUNTERS_NOT_PASSED(version=version, why=why),)


def digest(text: str) -> str:
    """A short fingerprint of a list; the prefix keeps YAML from reading it as a number."""
    return f"sha256-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _config_map(text: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "annotations": {CHECKSUM: digest(text)}},
        "data": {FILE: text},
    }
