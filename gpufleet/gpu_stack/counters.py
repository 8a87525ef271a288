"""Which counters dcgm-exporter collects in a cluster, and how it gets their list. Pure.

A chart with the value customMetrics puts a list into a ConfigMap of its own and mounts it. Where
the chart is older, or the user's values change what it mounts or starts, gpufleet writes the
ConfigMap: its name has the list's fingerprint, so that each revision of the release names its own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpufleet.core.findings import Finding
from gpufleet.core.versions import version_tuple
from gpufleet.exporter.counters import (
    Choosing,
    CounterCatalog,
    counters_csv,
    fields_of,
    own_fields,
    unknown_fields,
)
from gpufleet.gpu_stack import findings
from gpufleet.helm.builder import EXPORTER
from gpufleet.helm.chart_choice import has_feature
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.kube.facts import ServerVersion
from gpufleet.kube.objects import ObjectSet
from gpufleet.monitoring.settings import MonitoringSettings

PART = "exporter-counters"
CONFIG_MAP = "gpufleet-exporter-counters"  # and the fingerprint; alone: the volume's name
FOLDER, FILE = "/etc/gpufleet", "counters.csv"
CHECKSUM = "gpufleet/counters"  # annotation of the exporter's pods: they restart with the list
IMMUTABLE_SINCE = ServerVersion(1, 19)  # of a ConfigMap: beta, and on by default
VALUE, VOLUMES, MOUNTS = "customMetrics", "extraConfigMapVolumes", "extraVolumeMounts"

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CounterPlan:
    """How the exporter gets its list of counters.

    `values`: of the chart, below the user's. `over`: values above the user's, whose entries they
    contain. `text`: of our ConfigMap, None if none is needed. `collected`: the fields, None if
    unknown: the user's values name a list that gpufleet does not read. `prevented`: why the
    exporter gets no list from gpufleet, "" if it does, or gpufleet has none.
    """

    collected: frozenset[str] | None
    values: Values = field(default_factory=dict)
    over: Values = field(default_factory=dict)
    text: str | None = None
    prevented: str = ""
    findings: tuple[Finding, ...] = ()


def plan_counters(
    charts: ChartCatalog, counters: CounterCatalog, version: str, wanted: MonitoringSettings
) -> CounterPlan:
    """The plan for `version` of the exporter's chart. The user's list and values win over ours."""
    theirs = wanted.exporter_values
    tag = (theirs.get("image") or {}).get("tag")
    exporter = exporter_version(counters, version, theirs)
    by_value = has_feature(charts, EXPORTER, version, VALUE)
    source, asked = "monitoring_counters", wanted.counters
    if by_value and VALUE in theirs:
        source, asked = f"{VALUE} in monitoring_exporter_values", theirs[VALUE]
    prevented, unread = _obstacle(charts, counters.choosing, version, theirs)
    if source != "monitoring_counters" and not asked:
        prevented = prevented or f"the value {source} is empty"
    text = asked or counters_csv(counters, exporter or version)
    if prevented or not text:
        collected = None if unread else own_fields(counters, exporter or version)
        return CounterPlan(collected, prevented=prevented)
    plan = _passed(counters.choosing, text, theirs, by_value=by_value)
    doubts: list[Finding] = []
    if not exporter:
        doubts.append(findings.EXPORTER_VERSION_UNKNOWN(tag=tag, version=version))
    elif unknown := unknown_fields(counters, exporter, plan.collected or ()):
        names = ", ".join(f"{name} ({why})" for name, why in unknown.items())
        doubts.append(findings.COUNTERS_UNKNOWN(version=exporter, source=source, names=names))
    return replace(plan, findings=tuple(doubts))


def list_objects(wanted: MonitoringSettings, text: str | None, server: ServerVersion) -> ObjectSet:
    """Our ConfigMap with a list, in the namespace of the chart's objects; none for None. Where the
    server can, it is immutable: exporters read it once."""
    namespace = exporter_namespace(wanted)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    if text is None:
        return ObjectSet(namespace, path, PART, ())
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_map_name(text)},
        "data": {FILE: text},
        **({"immutable": True} if server >= IMMUTABLE_SINCE else {}),
    }
    return ObjectSet(namespace, path, PART, (body,))


def exporter_namespace(wanted: MonitoringSettings) -> str:
    """Where the chart puts its objects."""
    return wanted.exporter_values.get("namespaceOverride") or wanted.namespace


def _obstacle(
    charts: ChartCatalog, choosing: Choosing, version: str, theirs: Values
) -> tuple[str, bool]:
    """Why the exporter cannot get a list of ours, "" if it can; and whether it then reads one of
    the user's, which gpufleet does not know."""
    key = _names_a_list(choosing, theirs)
    if key:
        return f"the value {key} in monitoring_exporter_values names another list", True
    options, _ = _split(choosing, theirs)
    number = version_tuple(version)
    own = [file for first, file in choosing.own_files.items() if version_tuple(first) <= number]
    others = [value for _, value in options if value != own[-1]]  # than the chart's own
    if others:
        file = f"{others[-1]} of the image"
        return f"the value arguments in monitoring_exporter_values names {file}", False
    if not has_feature(charts, EXPORTER, version, VOLUMES):
        since = charts.charts[EXPORTER].features[VOLUMES]
        return f"its chart mounts ConfigMaps from {since} on", False
    return "", False


def _names_a_list(choosing: Choosing, theirs: Values) -> str:
    """The value by which the user names a list of their own; "" if none does."""
    inside = f"{choosing.folder}/"
    options, _ = _split(choosing, theirs)
    for option, value in options:
        if option in choosing.map_options or not value.startswith(inside):
            return "arguments"
    volumes, mounts = _of_theirs(choosing, theirs)
    if any(f"{mount.get('mountPath')}/".startswith(inside) for mount in mounts):
        return MOUNTS
    if MOUNTS not in theirs and any(each.get("name") == choosing.own_volume for each in volumes):
        return VOLUMES  # in place of the one that the chart mounts
    names = {each.get("name") for each in theirs.get("extraEnv") or ()}
    return "extraEnv" if names & set(choosing.variables) else ""


def _split(choosing: Choosing, theirs: Values) -> tuple[list[tuple[str, str]], list[Any]]:
    """The options of the user's arguments that choose a list, with their values, and the other
    words: -f PATH, --collectors=PATH."""
    words = iter(theirs.get("arguments") or ())
    options, others = [], []
    for word in words:
        name, equals, value = str(word).partition("=")
        option = name.lstrip("-") if name.startswith("-") else ""
        if option in (*choosing.file_options, *choosing.map_options):
            options.append((option, value if equals else str(next(words, ""))))
        else:
            others.append(word)
    return options, others


def _of_theirs(choosing: Choosing, theirs: Values) -> tuple[list[Values], list[Values]]:
    """The user's volumes and mounts, without those that repeat the chart's own list."""
    given = list(theirs.get(VOLUMES) or ())
    repeated = [
        each for each in given if (each.get("configMap") or {}).get("name") == choosing.own_map
    ]
    names = {each.get("name") for each in repeated}
    if VOLUMES not in theirs:
        names.add(choosing.own_volume)
    mounts = [each for each in theirs.get(MOUNTS) or () if each.get("name") not in names]
    return [each for each in given if each not in repeated], mounts


def _passed(choosing: Choosing, text: str, theirs: Values, *, by_value: bool) -> CounterPlan:
    """By the chart's value where the user's values leave its mounts and arguments as they are, else
    by our ConfigMap, beside what they mount and start."""
    collected = fields_of(text)
    if by_value and not {"arguments", VOLUMES, MOUNTS} & set(theirs):
        return CounterPlan(collected, {VALUE: text, "podAnnotations": {CHECKSUM: digest(text)}})
    volumes, mounts = _of_theirs(choosing, theirs)
    _, words = _split(choosing, theirs)
    over = {
        VOLUMES: [*volumes, {"name": CONFIG_MAP, "configMap": {"name": config_map_name(text)}}],
        MOUNTS: [*mounts, {"name": CONFIG_MAP, "mountPath": FOLDER, "readOnly": True}],
        "arguments": [*words, "-f", f"{FOLDER}/{FILE}"],
    }
    return CounterPlan(collected, over=over, text=text)


def exporter_version(counters: CounterCatalog, version: str, theirs: Values) -> str:
    """The exporter's version: of the tag in the user's values, "" if it names none, else the
    chart's."""
    tag = (theirs.get("image") or {}).get("tag")
    if not tag:
        return version
    found = re.match(counters.choosing.tag, str(tag))
    return found[found.lastindex or 0] if found else ""


def digest(text: str) -> str:
    """A short fingerprint of a list; the prefix keeps YAML from reading it as a number."""
    return f"sha256-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def config_map_name(text: str) -> str:
    """The name of our ConfigMap with that list."""
    return f"{CONFIG_MAP}-{digest(text)}"
