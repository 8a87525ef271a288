"""Parses the sources of facts: package lists, chart indexes, release lists. Pure.

Everything here is untrusted: versions and names that do not have their usual form are left out.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from typing import Any
from xml.parsers import expat

import yaml

from gpufleet.catalog.models import (
    ChartRelease,
    Cycles,
    DriverKinds,
    KeyEnds,
    PackageVersions,
)
from gpufleet.core.key_validity import key_expiries
from gpufleet.core.openpgp import OpenPgpError
from gpufleet.core.versions import upstream_version
from gpufleet.core.yaml_events import parse_yaml_events
from gpufleet.helm.chart_index import BrokenIndex, parse_index

KINDS_OF_BRANCH = {
    "lts branch": "lts",
    "production branch": "production",
    "new feature branch": "new-feature",
}
_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}")
_CHART_VERSION = re.compile(r"v?\d{1,4}\.\d{1,4}\.\d{1,4}")  # released ones
_MINOR = re.compile(r"\d{1,3}\.\d{1,3}")


class BrokenSource(ValueError):
    """The content of a source is not in its format."""


def parse_deb_packages(data: bytes) -> PackageVersions:
    """The packages of a `Packages` file of apt. Raises BrokenSource for an empty list."""
    text = data.decode("utf-8", "replace")
    pairs = []
    for stanza in re.split(r"\n\s*\n", text):
        fields = dict(re.findall(r"^(Package|Version):[ \t]*(\S+)", stanza, re.MULTILINE))
        if len(fields) == 2:
            pairs.append((fields["Package"], upstream_version(fields["Version"])))
    return _packages(pairs, "it is not a list of packages")


def find_primary(data: bytes) -> tuple[str, str]:
    """The path and the sha256 of the list of packages that a repomd.xml names."""
    inner: dict[str, str] = {}
    primary: dict[str, str] = {}

    def end(tag: str, attributes: Mapping[str, str], text: str) -> None:
        inner[tag] = attributes.get("href", text.strip())
        if tag == "data":
            primary.update(inner if attributes.get("type") == "primary" else {})
            inner.clear()

    _read_xml(data, end)
    place = primary.get("location", "")
    if not place or re.match(r"[a-z]+:|/", place) or ".." in place:
        raise BrokenSource("it names no list of packages")
    return place, primary.get("checksum", "")


def parse_rpm_packages(data: bytes) -> PackageVersions:
    """The packages of a primary.xml. Raises BrokenSource for an empty list."""
    pairs: list[tuple[str, str]] = []
    name = ""

    def end(tag: str, attributes: Mapping[str, str], text: str) -> None:
        nonlocal name
        if tag == "name":
            name = text.strip()
        elif tag == "version":
            pairs.append((name, attributes.get("ver", "")))

    _read_xml(data, end)
    return _packages(pairs, "it is not a list of packages")


def _read_xml(data: bytes, seen: Callable[[str, Mapping[str, str], str], None]) -> None:
    """Call `seen` at each element's end, with its tag, attributes and text. No tree is built: lists
    are long. A document type is refused: its entities could grow without limit."""
    opened: list[Mapping[str, str]] = []
    text: list[str] = []

    def start(_: str, attributes: Mapping[str, str]) -> None:
        opened.append(attributes)
        text.clear()

    def end(tag: str) -> None:
        seen(tag, opened.pop(), "".join(text))

    def refuse(*_: object) -> None:
        raise BrokenSource("it has a document type, which no list of packages has")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = text.append, refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise BrokenSource(f"it is not XML: {error}") from error


def _packages(pairs: Iterable[tuple[str, str]], otherwise: str) -> PackageVersions:
    found: dict[str, set[str]] = defaultdict(set)
    for name, version in pairs:
        if _VERSION.fullmatch(version) and re.fullmatch(r"[\w.+-]{1,200}", name):
            found[name].add(version)
    if not found:
        raise BrokenSource(otherwise)
    return {name: frozenset(versions) for name, versions in found.items()}


def parse_key(data: bytes) -> KeyEnds:
    """The keys of a key file. Raises BrokenSource for a file without keys."""
    try:
        found = key_expiries(data)
    except OpenPgpError as error:
        raise BrokenSource(f"it is not a public key: {error}") from error
    if not found:
        raise BrokenSource("it has no public key")
    return found


def parse_charts(data: bytes, charts: Iterable[str]) -> dict[str, tuple[ChartRelease, ...]]:
    """The released versions of these charts in the index of a repository."""
    try:
        return {
            chart: tuple(
                ChartRelease(entry.version, entry.kube_version)
                for entry in parse_index(data, chart)
                if _CHART_VERSION.fullmatch(entry.version)
            )
            for chart in charts
        }
    except BrokenIndex as error:
        raise BrokenSource(f"it is not the index of a Helm repository: {error}") from error


def parse_chart_file(data: bytes) -> tuple[ChartRelease, ...]:
    """The version of a Chart.yaml."""
    found = _yaml(data)
    version, asked = _text(found, "version"), _text(found, "kubeVersion")
    if not _CHART_VERSION.fullmatch(version):
        raise BrokenSource("it has no version of a chart")
    return (ChartRelease(version, asked),)


def parse_schedule(data: bytes) -> Cycles:
    """The minors of Kubernetes' schedule.yaml, with their ends of life."""
    found = _yaml(data)
    rows = found.get("schedules") if isinstance(found, dict) else None
    return _cycles(rows, "release", "endOfLifeDate")


def parse_cycles(data: bytes) -> Cycles:
    """The minors of a product of endoflife.date, with their ends of life."""
    return _cycles(_json(data), "cycle", "eol")


def parse_driver_releases(data: bytes) -> DriverKinds:
    """The kinds of driver branches in NVIDIA's releases.json."""
    found = _json(data)
    kinds = {
        int(branch): KINDS_OF_BRANCH[_text(entry, "type")]
        for branch, entry in (found.items() if isinstance(found, dict) else ())
        if re.fullmatch(r"\d{3,4}", branch) and _text(entry, "type") in KINDS_OF_BRANCH
    }
    if not kinds:
        raise BrokenSource("it names no driver branch")
    return kinds


def _cycles(rows: Any, name: str, end: str) -> Cycles:
    found = dict(_minors(rows, name, end))
    if not found:
        raise BrokenSource("it names no minor version")
    return found


def _minors(rows: Any, name: str, end: str) -> Iterator[tuple[str, date | None]]:
    for row in rows if isinstance(rows, list) else ():
        minor, day = _text(row, name), None
        with suppress(ValueError):
            day = date.fromisoformat(_text(row, end))
        if _MINOR.fullmatch(minor):
            yield minor, day


def _text(value: Any, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BrokenSource(f"it is not JSON: {error}") from error


def _yaml(data: bytes) -> Any:
    """YAML with every scalar as text: 1.30 stays 1.30."""
    try:
        for _ in parse_yaml_events(data):  # within its limits
            pass
        return yaml.load(data, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BrokenSource(f"it is not YAML: {' '.join(str(error).split())}") from error
