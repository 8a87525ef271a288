"""Fakes of the upstream charts: python -m tests.cluster.fake_charts FOLDER

They have the names, versions, kubeVersions and values of the real ones and render their own objects
with the names and fields that matter. They reject a value that the real chart of that version does
not have. With GPUFLEET_CHARTS the tests use the real archives instead.
"""

from __future__ import annotations

import csv
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpufleet.core.merge import merge_mappings
from gpufleet.core.versions import version_tuple

SOURCE = Path(__file__).parent / "charts" / "fake"
PASSED_ON = ("grafana", "kube-state-metrics", "prometheus-node-exporter", "crds")  # to subcharts
CRDS = ("Prometheus", "ServiceMonitor", "PrometheusRule")


@dataclass(frozen=True, slots=True)
class FakeChart:
    """One version of one chart; `operator` is the version in the annotations of its CRDs."""

    chart: str
    version: str
    kube: str = ""
    operator: str = ""
    crds: bool = False


CHARTS = (
    FakeChart("kube-prometheus-stack", "45.10.1", ">=1.16.0-0", crds=True),
    FakeChart("kube-prometheus-stack", "46.2.0", ">=1.16.0-0", crds=True),
    FakeChart("kube-prometheus-stack", "72.9.1", ">=1.19.0-0", "0.82.2", crds=True),
    FakeChart("kube-prometheus-stack", "88.5.3", ">=1.25.0-0", "0.93.1", crds=True),
    FakeChart("node-feature-discovery", "0.14.6"),
    FakeChart("node-feature-discovery", "0.17.4"),
    FakeChart("node-feature-discovery", "0.19.0"),
    FakeChart("nvidia-device-plugin", "0.14.5", ">= 1.10.0-0"),
    FakeChart("nvidia-device-plugin", "0.19.0", ">= 1.10.0-0"),
    FakeChart("nvidia-device-plugin", "0.20.0", ">= 1.10.0-0"),
    FakeChart("dra-driver-nvidia-gpu", "0.4.1", ">=1.32.0-0"),
    FakeChart("dcgm-exporter", "2.6.10", ">= 1.13.0-0"),
    FakeChart("dcgm-exporter", "3.1.5", ">= 1.19.0-0"),
    FakeChart("dcgm-exporter", "4.8.2", ">= 1.19.0-0"),
    FakeChart("prometheus-adapter", "3.5.0"),
    FakeChart("prometheus-adapter", "4.14.2"),
    FakeChart("prometheus-adapter", "5.3.0"),
    FakeChart("node-problem-detector", "2.3.21"),
    FakeChart("node-problem-detector", "2.4.1"),
    FakeChart("gpu-operator", "v1.8.2", ">= 1.16.0-0"),
    FakeChart("gpu-operator", "v1.9.1", ">= 1.16.0-0"),
    FakeChart("gpu-operator", "v23.6.2", ">= 1.16.0-0"),
    FakeChart("gpu-operator", "v23.9.2", ">= 1.16.0-0"),
    FakeChart("gpu-operator", "v24.9.2", ">= 1.16.0-0"),
    FakeChart("gpu-operator", "v25.10.1", ">= 1.16.0-0"),
    FakeChart("gpu-operator", "v26.3.3", ">= 1.16.0-0"),
    FakeChart("gpu-operator", "v26.7.0", ">= 1.16.0-0"),
)


def write_charts(folder: Path) -> None:
    """Write every fake as CHART-VERSION.tgz."""
    folder.mkdir(parents=True, exist_ok=True)
    for chart in CHARTS:
        data = archive(chart)
        (folder / f"{chart.chart}-{chart.version}.tgz").write_bytes(data)


def archive(chart: FakeChart) -> bytes:
    """The chart as helm packages it."""
    source = SOURCE / chart.chart
    files = {"templates/all.yaml": (source / "templates" / "all.yaml").read_text()}
    if chart.crds:
        files |= {f"crds/{kind.lower()}.yaml": yaml.safe_dump(crd(kind, chart)) for kind in CRDS}
    files |= {f"crds/{path.name}": path.read_text() for path in (source / "crds").glob("*.yaml")}
    return packed(chart, yaml.safe_load((source / "values.yaml").read_text()), files)


def packed(chart: FakeChart, values: dict[str, Any], texts: dict[str, str]) -> bytes:
    """A chart of templates and CRDs. It has the real chart's keys; `values` sets those that are not
    null."""
    about = {"apiVersion": "v2", "name": chart.chart, "version": chart.version}
    if chart.kube:
        about["kubeVersion"] = chart.kube
    files = {
        "Chart.yaml": yaml.safe_dump(about),
        "values.yaml": yaml.safe_dump(defaults(chart, values)),
        "values.schema.json": json.dumps(schema(chart)),
        **texts,
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as written:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{chart.chart}/{name}")
            entry.size = len(text.encode())
            written.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def defaults(chart: FakeChart, own: dict[str, Any]) -> dict[str, Any]:
    """The values of the fake's templates, and null for all others of the real chart."""
    root: dict[str, Any] = {}
    for path, kind in keys(chart):
        if kind == "comment":
            continue
        place = root
        for part in path[:-1]:
            if not isinstance(place.get(part), dict):
                place[part] = {}
            place = place[part]
        place.setdefault(path[-1], {} if kind == "map" else None)
    return merge_mappings(root, _known(own, root))


def _known(own: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """The part of `own` that the real chart has at that version, or passes to a subchart."""
    result = {}
    for key, value in own.items():
        there = root.get(key)
        if key in PASSED_ON or (key in root and not isinstance(there, dict)):
            result[key] = value
        elif isinstance(there, dict):
            inner = isinstance(value, dict) and there
            result[key] = _known(value, there) if inner else value
    return result


def keys(chart: FakeChart) -> Iterator[tuple[list[str], str]]:
    """Path and kind of each value of the real chart at that version: map, any, or comment for
    one that its templates use and its values.yaml only mentions."""
    with (SOURCE / chart.chart / "keys.tsv").open() as file:
        for path, since, until, kind in csv.reader(file, delimiter="\t"):
            if _between(chart.version, since, until):
                yield path.split("."), kind


def schema(chart: FakeChart) -> dict[str, Any]:
    """JSON schema of the values of the real chart at that version; it rejects other keys."""
    root: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {}}
    root["properties"]["global"] = {}
    for path, _ in keys(chart):
        _add(root, path)
    for key in PASSED_ON:
        if key in root["properties"]:
            root["properties"][key] = {}
    return root


def _add(root: dict[str, Any], path: list[str]) -> None:
    place = root
    for part in path[:-1]:
        place = place["properties"].setdefault(part, {})
        if "properties" not in place:
            place |= {"type": ["object", "null"], "additionalProperties": False, "properties": {}}
    place["properties"].setdefault(path[-1], {})


def _between(version: str, since: str, until: str) -> bool:
    number = version_tuple(version.removeprefix("v"))
    if number < version_tuple(since.removeprefix("v")):
        return False
    return not until or number <= version_tuple(until.removeprefix("v"))


TEXT: dict[str, Any] = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
# Groups of a PrometheusRule, as the operator's CRD describes them.
GROUPS: dict[str, Any] = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "rules": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["expr"],
                    "properties": {
                        "alert": TEXT, "record": TEXT, "labels": TEXTS, "annotations": TEXTS,
                        "expr": {"x-kubernetes-int-or-string": True},
                        "for": {"type": "string", "pattern": r"^(0|((\d+)h)?((\d+)m)?((\d+)s)?)$"},
                    },
                },
            },
        },
    },
}  # fmt: skip


def crd(kind: str, chart: FakeChart) -> dict[str, Any]:
    """A CRD whose spec has hostNetwork only if the real one has it."""
    plural = "prometheuses" if kind == "Prometheus" else f"{kind.lower()}s"
    spec: dict[str, Any] = {"type": "object", "properties": {}}
    spec["properties"] = {
        name: {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        for name in (
            "serviceMonitorSelector",
            "serviceMonitorNamespaceSelector",
            "ruleSelector",
            "selector",
            "namespaceSelector",
        )
    }
    spec["properties"]["endpoints"] = {
        "type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }  # fmt: skip
    spec["properties"]["groups"] = GROUPS
    if chart.operator and version_tuple(chart.operator) >= (0, 90):
        spec["properties"]["hostNetwork"] = {"type": "boolean"}
    notes = {"operator.prometheus.io/version": chart.operator} if chart.operator else {}
    # without the subresource, so that the chart can render what an operator reports
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"spec": spec, "status": status}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com", "annotations": notes},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {
                "kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()
            },
            "versions": [
                {
                    "name": "v1", "served": True, "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                }
            ],
        },
    }  # fmt: skip


if __name__ == "__main__":
    write_charts(Path(sys.argv[1]))
