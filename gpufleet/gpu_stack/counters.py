"""Chooses the counters that dcgm-exporter collects, and how its pods get their list. Pure.

A chart with the value customMetrics puts the list into a ConfigMap and mounts it. If the chart is
older, or the user's values change its mounts or arguments, gpufleet writes the ConfigMap. Its name
has the list's fingerprint, so that each revision of the release names its own list.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.merge import value_at
from gpufleet.core.versions import version_tuple
from gpufleet.exporter.counters import (
    Choosing,
    counters_csv,
    fields_of,
    load_counters,
    own_fields,
    unknown_fields,
)
from gpufleet.gpu_stack import findings
from gpufleet.gpu_stack.model import StackBuilder
from gpufleet.helm.builder import EXPORTER
from gpufleet.kube.facts import ServerVersion
from gpufleet.kube.objects import ObjectSet
from gpufleet.monitoring.alert_models import load_alerts
from gpufleet.monitoring.alerting import silent_alerts
from gpufleet.monitoring.settings import MonitoringSettings

COUNTERS_PART = "exporter-counters"
CONFIG_MAP = "gpufleet-exporter-counters"  # name of the volume; the ConfigMap adds a fingerprint
FOLDER, FILE = "/etc/gpufleet", "counters.csv"
CHECKSUM = "gpufleet/counters"  # annotation of the exporter's pods: a new list restarts them
IMMUTABLE_SINCE = ServerVersion(1, 19)  # immutable ConfigMaps: beta, on by default
VALUE, VOLUMES, MOUNTS = "customMetrics", "extraConfigMapVolumes", "extraVolumeMounts"

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CounterPlan:
    """How the exporter gets its list of counters.

    `values`: chart values that the user's values override. `over`: chart values that override the
    user's; they contain the user's entries. `text`: content of gpufleet's ConfigMap, None if it is
    not needed. `collected`: the collected fields, None if the user's values name a list that
    gpufleet does not read.
    """

    collected: frozenset[str] | None
    values: Values = field(default_factory=dict)
    over: Values = field(default_factory=dict)
    text: str | None = None


def plan_counters(build: StackBuilder) -> CounterPlan:
    """Plan the list for the selected version of the chart. The user's list and values win."""
    wanted, version = build.settings.monitoring, build.charts[EXPORTER].version
    counters, theirs = load_counters(), wanted.exporter_values
    exporter = exporter_version(build)
    by_value = build.has_feature(EXPORTER, VALUE)
    source, asked = "monitoring_counters", wanted.counters
    if by_value and VALUE in theirs:
        source, asked = f"{VALUE} in monitoring_exporter_values", theirs[VALUE]
    prevented, unread = _obstacle(build, counters.choosing)
    if source != "monitoring_counters" and not asked:
        prevented = prevented or f"the value {source} is empty"
    text = asked or counters_csv(counters, exporter or version)
    if prevented:
        _report_prevented(build, prevented, unread=unread)
    if prevented or not text:
        return CounterPlan(None if unread else own_fields(counters, exporter or version))
    plan = _passed(counters.choosing, text, theirs, by_value=by_value)
    if not exporter:
        tag = value_at(theirs, "image.tag")
        build.findings.append(findings.EXPORTER_VERSION_UNKNOWN(tag=tag, version=version))
    elif unknown := unknown_fields(counters, exporter, plan.collected or ()):
        names = ", ".join(f"{name} ({why})" for name, why in unknown.items())
        build.findings.append(
            findings.COUNTERS_UNKNOWN(version=exporter, source=source, names=names)
        )
    return plan


def _report_prevented(build: StackBuilder, why: str, *, unread: bool) -> None:
    """Report why the exporter gets no list. If its fields are known, GF897 names the silent
    alerts."""
    version, effect = build.charts[EXPORTER].version, ""
    if unread:
        alerts = ", ".join(silent_alerts(load_alerts(), own_fields(load_counters(), version)))
        effect = f" Unless that list has their fields, these alerts never fire: {alerts}."
    source = "monitoring_counters" if build.settings.monitoring.counters else "gpufleet's list"
    build.findings.append(
        findings.COUNTERS_NOT_PASSED(version=version, source=source, why=why, effect=effect)
    )


def list_objects(build: StackBuilder, text: str | None) -> ObjectSet:
    """Our ConfigMap with the list `text`, in the namespace of the chart's objects. It is immutable
    if the server supports that, because exporters read it only once."""
    namespace = exporter_namespace(build.settings.monitoring)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    if text is None:
        return ObjectSet(namespace, path, COUNTERS_PART, ())
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_map_name(text)},
        "data": {FILE: text},
        **({"immutable": True} if build.facts.server >= IMMUTABLE_SINCE else {}),
    }
    return ObjectSet(namespace, path, COUNTERS_PART, (body,))


def exporter_namespace(wanted: MonitoringSettings) -> str:
    """The namespace of the chart's objects."""
    return wanted.exporter_values.get("namespaceOverride") or wanted.namespace


def _obstacle(build: StackBuilder, choosing: Choosing) -> tuple[str, bool]:
    """Why the exporter cannot get our list, or "" if it can. The second value is True if it reads a
    user's list instead, with fields that gpufleet does not know."""
    theirs = build.settings.monitoring.exporter_values
    key = _names_a_list(choosing, theirs)
    if key:
        return f"the value {key} in monitoring_exporter_values names another list", True
    options, _ = _split(choosing, theirs)
    number = version_tuple(build.charts[EXPORTER].version)
    own = [file for first, file in choosing.own_files.items() if version_tuple(first) <= number]
    others = [value for _, value in options if value != own[-1]]  # not the chart's default file
    if others:
        file = f"{others[-1]} of the image"
        return f"the value arguments in monitoring_exporter_values names {file}", False
    if not build.has_feature(EXPORTER, VOLUMES):
        since = build.catalog.charts[EXPORTER].features[VOLUMES]
        return f"its chart mounts ConfigMaps from {since} on", False
    return "", False


def _names_a_list(choosing: Choosing, theirs: Values) -> str:
    """The key of the value with which the user names a list, or "" if no value does."""
    inside = f"{choosing.folder}/"
    options, _ = _split(choosing, theirs)
    for option, value in options:
        if option in choosing.map_options or not value.startswith(inside):
            return "arguments"
    volumes, mounts = _of_theirs(choosing, theirs)
    if any(f"{mount.get('mountPath')}/".startswith(inside) for mount in mounts):
        return MOUNTS
    if MOUNTS not in theirs and any(each.get("name") == choosing.own_volume for each in volumes):
        return VOLUMES  # replaces the chart's volume
    names = {each.get("name") for each in theirs.get("extraEnv") or ()}
    return "extraEnv" if names & set(choosing.variables) else ""


def _split(choosing: Choosing, theirs: Values) -> tuple[list[tuple[str, str]], list[Any]]:
    """Split the user's arguments into the options that choose a list, with their values (-f PATH,
    --collectors=PATH), and the other words."""
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
    """Pass the list in the chart's value if the user's values leave its mounts and arguments as
    they are. Otherwise mount our ConfigMap in addition to the user's mounts."""
    collected = fields_of(text)
    if by_value and not {"arguments", VOLUMES, MOUNTS} & set(theirs):
        return CounterPlan(
            collected, {VALUE: text, "podAnnotations": {CHECKSUM: counters_digest(text)}}
        )
    volumes, mounts = _of_theirs(choosing, theirs)
    _, words = _split(choosing, theirs)
    over = {
        VOLUMES: [*volumes, {"name": CONFIG_MAP, "configMap": {"name": config_map_name(text)}}],
        MOUNTS: [*mounts, {"name": CONFIG_MAP, "mountPath": FOLDER, "readOnly": True}],
        "arguments": [*words, "-f", f"{FOLDER}/{FILE}"],
    }
    return CounterPlan(collected, over=over, text=text)


def exporter_version(build: StackBuilder) -> str:
    """The exporter's version: from the tag in the user's values ("" if the tag names no version),
    or else the chart's version."""
    tag = (build.settings.monitoring.exporter_values.get("image") or {}).get("tag")
    if not tag:
        return build.charts[EXPORTER].version
    found = re.match(load_counters().choosing.tag, str(tag))
    return found[found.lastindex or 0] if found else ""


def counters_digest(text: str) -> str:
    """A short fingerprint of a list; the prefix keeps YAML from reading it as a number."""
    return f"sha256-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def config_map_name(text: str) -> str:
    """The name of our ConfigMap with this list."""
    return f"{CONFIG_MAP}-{counters_digest(text)}"
