"""Contents of a Helm chart: metadata, values, CRDs. Pure.

Source: the chart file structure and the rules for dependencies and CRDs in Helm's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from gpufleet.core.merge import merge_mappings, value_at
from gpufleet.kube.manifests import load_manifests


class BrokenChart(ValueError):
    """An archive that is not a Helm chart, or does not parse."""


@dataclass(frozen=True, slots=True)
class Subchart:
    """A chart inside a chart. `key`: path of its values in the parent chart's.
    `condition`: paths of values; the first that is set enables or disables it."""

    key: str
    condition: tuple[str, ...]
    chart: ChartContent


@dataclass(frozen=True, slots=True)
class ChartContent:
    """One chart."""

    name: str
    version: str
    app_version: str
    values: Mapping[str, Any]  # defaults
    crds: tuple[Mapping[str, Any], ...]  # in its folder crds/, without subcharts
    subcharts: tuple[Subchart, ...] = ()

    def known_values(self) -> dict[str, Any]:
        """Its default values, with those of subcharts under their keys and their conditions."""
        known = dict(self.values)
        conditions: dict[str, Any] = {}
        for sub in self.subcharts:
            own = known.get(sub.key)
            inner = sub.chart.known_values()
            known[sub.key] = merge_mappings(inner, own) if isinstance(own, Mapping) else inner
            for path in sub.condition:
                _add(conditions, path)
        return merge_mappings(conditions, known)

    def all_crds(self, values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Its CRDs and those of the subcharts that `values`, merged over the defaults, enable."""
        yield from self.crds
        effective = merge_mappings(self.values, values)
        for sub in self.subcharts:
            if _is_on(sub.condition, effective):
                inner = effective.get(sub.key)
                yield from sub.chart.all_crds(inner if isinstance(inner, Mapping) else {})


def _add(values: dict[str, Any], path: str) -> None:
    """Set True at a path, unless values exist below it."""
    *above, last = path.split(".")
    for part in above:
        if not isinstance(values.get(part), dict):
            values[part] = {}
        values = values[part]
    values.setdefault(last, True)


def _is_on(condition: tuple[str, ...], values: Mapping[str, Any]) -> bool:
    for path in condition:
        found = value_at(values, path)
        if isinstance(found, bool):
            return found
    return True


def parse_chart(files: Mapping[str, bytes]) -> ChartContent:
    """Parse the files of an archive, path in the chart -> content. Raises BrokenChart."""
    try:
        return _parse(files)
    except (TypeError, KeyError, AttributeError) as error:
        raise BrokenChart(f"invalid structure: {error}") from error


def _parse(files: Mapping[str, bytes]) -> ChartContent:
    metadata = _load(files, "Chart.yaml")
    if not isinstance(metadata.get("name"), str) or "version" not in metadata:
        raise BrokenChart("Chart.yaml lacks name or version")
    return ChartContent(
        name=metadata["name"],
        version=str(metadata["version"]),
        app_version=str(metadata.get("appVersion") or ""),
        values=_load(files, "values.yaml"),
        crds=tuple(_crds(files)),
        subcharts=_uses(files, metadata),
    )


def _uses(files: Mapping[str, bytes], metadata: Mapping[str, Any]) -> tuple[Subchart, ...]:
    """Every use of a subchart. A subchart that Chart.yaml does not list is used once."""
    listed: dict[str, dict[str, Any]] = {}
    old = _load(files, "requirements.yaml") if "requirements.yaml" in files else {}  # apiVersion v1
    for entry in (*(metadata.get("dependencies") or ()), *(old.get("dependencies") or ())):
        listed.setdefault(entry["name"], {})[str(entry.get("alias") or entry["name"])] = entry
    found = []
    for folder, inner in _subcharts(files).items():
        chart = _parse(inner)
        for key, entry in (listed.get(chart.name) or {folder: {}}).items():
            condition = str(entry.get("condition") or "")
            paths = tuple(part.strip() for part in condition.split(",") if part.strip())
            found.append(Subchart(key, paths, chart))
    return tuple(found)


def _subcharts(files: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {}
    for path, data in files.items():
        parts = path.split("/", 2)
        if len(parts) == 3 and parts[0] == "charts":
            found.setdefault(parts[1], {})[parts[2]] = data
    return {folder: inner for folder, inner in found.items() if "Chart.yaml" in inner}


def _crds(files: Mapping[str, bytes]) -> Iterator[Mapping[str, Any]]:
    for path in sorted(files):
        if path.startswith("crds/") and path.endswith((".yaml", ".yml", ".json")):
            for document in _documents(path, files[path]):
                if document.get("kind") == "CustomResourceDefinition":
                    spec, name = document["spec"], document["metadata"]["name"]
                    kind = spec["names"]["kind"]
                    if not all((document["apiVersion"], name, spec["group"], kind)):
                        raise BrokenChart(f"{path} has a CRD without name, group or kind")
                    yield document


def _documents(path: str, data: bytes) -> list[Mapping[str, Any]]:
    try:
        return [found for found in load_manifests(data) if isinstance(found, dict)]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BrokenChart(f"{path} does not parse: {' '.join(str(error).split())}") from error


def _load(files: Mapping[str, bytes], path: str) -> dict[str, Any]:
    if path not in files and path == "Chart.yaml":
        raise BrokenChart("Chart.yaml is missing")
    documents = _documents(path, files.get(path, b""))
    return dict(documents[0]) if documents else {}
