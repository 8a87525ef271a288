"""Contents of a Helm chart: metadata, values, CRDs. Pure.

Source: the chart file structure and the rules for dependencies and CRDs in Helm's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpufleet.core.merge import merged
from gpufleet.kube.manifests import load_manifests

_USED = re.compile(rb"\.Values\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")


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
    subcharts: tuple[Subchart, ...] = field(default_factory=tuple)
    used: tuple[str, ...] = ()  # sorted paths of values used in its templates

    def known_values(self) -> dict[str, Any]:
        """Its default values, including subcharts under their keys and their conditions.

        Values used in templates are known too: some charts list them only in comments.
        """
        known = dict(self.values)
        for path in self.used:
            known = _with_name(known, path)
        for sub in self.subcharts:
            own = known.get(sub.key)
            inner = sub.chart.known_values()
            known[sub.key] = merged(inner, own) if isinstance(own, Mapping) else inner
            for path in sub.condition:
                known = merged(_nested(path, True), known)
        return known

    def all_crds(self, values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Its CRDs and those of the subcharts that `values`, merged over the defaults, enable."""
        yield from self.crds
        effective = merged(self.values, values)
        for sub in self.subcharts:
            if _is_on(sub.condition, effective):
                inner = effective.get(sub.key)
                yield from sub.chart.all_crds(inner if isinstance(inner, Mapping) else {})


def _with_name(known: Mapping[str, Any], path: str) -> dict[str, Any]:
    """`known` with an entry at `path`. An empty map accepts any key and stays empty."""
    key, _, rest = path.partition(".")
    below = known.get(key)
    if key not in known:
        return {**known, key: _nested(rest, {}) if rest else {}}
    if rest and isinstance(below, Mapping) and below:
        return {**known, key: _with_name(below, rest)}
    return dict(known)


def _nested(path: str, value: Any) -> dict[str, Any]:
    """{"nfd": {"enabled": value}} for nfd.enabled."""
    for part in reversed(path.split(".")):
        value = {part: value}
    return dict(value)


def _is_on(condition: tuple[str, ...], values: Mapping[str, Any]) -> bool:
    for path in condition:
        found: Any = values
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
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
    subcharts = []
    entries = _entries(files, metadata)
    listed = {str(entry.get("alias") or entry["name"]): entry for entry in entries}
    for folder, inner in _subcharts(files).items():
        chart = _parse(inner)
        uses = {key: e for key, e in listed.items() if e["name"] == chart.name} or {folder: {}}
        for key, entry in uses.items():
            condition = str(entry.get("condition") or "")
            paths = tuple(part.strip() for part in condition.split(",") if part.strip())
            subcharts.append(Subchart(key, paths, chart))
    return ChartContent(
        name=metadata["name"],
        version=str(metadata["version"]),
        app_version=str(metadata.get("appVersion") or ""),
        values=_load(files, "values.yaml"),
        crds=tuple(_crds(files)),
        subcharts=tuple(subcharts),
        used=tuple(sorted(_used(files))),
    )


def _used(files: Mapping[str, bytes]) -> set[str]:
    """Paths of values in the templates; `global` is shared by all charts and accepts any key."""
    found = {
        name.decode()
        for path, text in files.items()
        if path.startswith("templates/")
        for name in _USED.findall(text)
    }
    return {name for name in found if name.partition(".")[0] != "global"}


def _entries(files: Mapping[str, bytes], metadata: Mapping[str, Any]) -> list[Any]:
    """Dependencies: in Chart.yaml, in charts of apiVersion v1 in requirements.yaml."""
    old = _load(files, "requirements.yaml") if "requirements.yaml" in files else {}
    return [*(metadata.get("dependencies") or ()), *(old.get("dependencies") or ())]


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
                    if not _is_whole(document):
                        raise BrokenChart(f"{path} has a CRD without name, group or kind")
                    yield document


def _is_whole(crd: Mapping[str, Any]) -> bool:
    """Whether a CRD has the fields that are read before the API server validates it."""
    spec = crd["spec"]
    return all((crd["apiVersion"], crd["metadata"]["name"], spec["group"], spec["names"]["kind"]))


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
