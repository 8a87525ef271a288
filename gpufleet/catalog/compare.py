"""Compares what the sources say with the catalog. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import urlsplit

from gpufleet.catalog import findings
from gpufleet.catalog.compare_drivers import compare_drivers, newer_text
from gpufleet.catalog.models import (
    ChartRelease,
    ChartReleases,
    Cycles,
    DataEdit,
    DriverKinds,
    Gap,
    KeyEnds,
    PackageVersions,
    Reading,
    Unread,
)
from gpufleet.catalog.sources import list_keys
from gpufleet.core.findings import Finding
from gpufleet.core.names import count_noun
from gpufleet.core.versions import version_tuple
from gpufleet.helm.chart_models import Chart, ChartCatalog
from gpufleet.node.catalog import Catalog
from gpufleet.status.support import MaintainedRuntime, MaintainedRuntimes

EXPIRY_NOTICE = timedelta(days=90)  # before a key expires
MAIN_PACKAGE = "nvidia-container-toolkit"
FILE_OF_KEY = {"container toolkit": "toolkit.yaml", "Kubernetes": "kubernetes.yaml"}


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """The catalog with which the sources are compared, and the day."""

    catalog: Catalog
    charts: ChartCatalog
    runtimes: MaintainedRuntimes
    today: date

    @property
    def read(self) -> str:
        """The day of the sources, for `source:`."""
        return self.today.isoformat()


def compare_all(known: KnownFacts, readings: Sequence[Reading]) -> list[Gap]:
    """Every gap between the catalog and the sources that were read."""
    by_kind: dict[str, list[Reading]] = {}
    for reading in readings:
        kind = "packages" if reading.source.kind in ("deb", "rpm") else reading.source.kind
        by_kind.setdefault(f"{reading.source.subject} {kind}", []).append(reading)
    kinds: DriverKinds = next(
        (reading.content for reading in by_kind.get("drivers releases", [])), {}
    )
    repositories = by_kind.get("drivers packages", [])
    return [
        *compare_drivers(known.catalog, repositories, kinds, known.today),
        *compare_toolkit(known, by_kind.get("toolkit packages", [])),
        *compare_keys(known, by_kind.get("keys key", [])),
        *compare_charts(
            known, [*by_kind.get("charts index", []), *by_kind.get("charts chart", [])]
        ),
        *compare_kubernetes(
            known, by_kind.get("kubernetes schedule", []), by_kind.get("kubernetes cycles", [])
        ),
        *compare_runtimes(known, by_kind.get("runtimes cycles", [])),
    ]


def compare_toolkit(known: KnownFacts, readings: Iterable[Reading]) -> Iterator[Gap]:
    """A newer toolkit, and packages of the toolkit with another name."""
    toolkit, newest, url = known.catalog.toolkit, "", ""
    for reading in readings:
        packages: PackageVersions = reading.content
        versions = packages.get(MAIN_PACKAGE, frozenset())
        version = max(versions, key=version_tuple, default="")
        expected = toolkit.packages.names if version else (MAIN_PACKAGE,)
        for name in expected:
            if version not in packages.get(name, ()):
                yield _gone_toolkit(name, version, reading)
        if version_tuple(version) > version_tuple(newest):
            newest, url = version, reading.source.url
    if version_tuple(newest) > version_tuple(toolkit.newest):
        gap, file = newer_text("Container toolkit", newest, url, toolkit.newest), "toolkit/toolkit"
        finding = findings.ENTRY_OLD(gap=gap, file="toolkit.yaml")
        entry = {"version": newest, "source": f"{url} (read {known.read})"}
        edits = (DataEdit(file, ("newest",), newest), DataEdit(file, ("versions",), entry, "add"))
        yield Gap("toolkit", finding, url, edits)


def _gone_toolkit(name: str, version: str, reading: Reading) -> Gap:
    finding = findings.ENTRY_GONE(
        name=name,
        version=version or "of any version",
        place=reading.source.title,
        near="",
        file="toolkit.yaml",
    )
    return Gap("toolkit", finding, reading.source.url)


def compare_keys(known: KnownFacts, readings: Iterable[Reading]) -> Iterator[Gap]:
    """Keys with another fingerprint, and keys that expire soon or have expired."""
    keys = list_keys(known.catalog)
    for reading in readings:
        ends: KeyEnds = reading.content
        name = reading.source.about
        key, url = keys[name][0], reading.source.url
        file = FILE_OF_KEY.get(name, "repositories.yaml")
        file = "containerd.yaml" if name.startswith("Docker") else file
        if new := [each for each in ends if each not in key.fingerprints]:
            before = ", ".join(key.fingerprints) or "no fingerprint of it"
            found = ", ".join(new)
            changed = findings.KEY_CHANGED(what=name, found=found, known=before, file=file)
            yield Gap("keys", changed, url)
        for fingerprint, end in ends.items():
            if end and end.date() <= known.today + EXPIRY_NOTICE:
                word = "expired" if end.date() < known.today else "expires"
                day = end.date().isoformat()
                expiry = findings.KEY_EXPIRES(
                    fingerprint=fingerprint, what=name, word=word, date=day
                )
                yield Gap("keys", expiry, url)


def compare_charts(known: KnownFacts, readings: Iterable[Reading]) -> Iterator[Gap]:
    """Charts that are newer than those of the catalog, and choices that are gone."""
    for reading in readings:
        releases: ChartReleases = reading.content
        for name, found in releases.items():
            chart, url = known.charts.charts[name], reading.source.url
            yield from _newer_chart(name, chart, found, url)
            if reading.source.kind == "index":
                yield from _gone_charts(name, chart, found, url)


def _newer_chart(name: str, chart: Chart, found: Sequence[ChartRelease], url: str) -> Iterator[Gap]:
    known = max((*chart.installed, *(pick.version for pick in chart.picks)), key=version_tuple)
    newest = max(found, key=lambda each: version_tuple(each.version), default=None)
    if newest and version_tuple(newest.version) > version_tuple(known):
        asks = newest.kube_version
        finding = findings.UNTRIED_NEWER(
            what=name,
            version=newest.version,
            asks=f", for Kubernetes {asks}" if asks else "",
            known=known,
            file="charts.yaml",
        )
        yield Gap("charts", finding, url)


def _gone_charts(name: str, chart: Chart, found: Sequence[ChartRelease], url: str) -> Iterator[Gap]:
    there = {each.version.removeprefix("v") for each in found}
    for pick in chart.picks:
        if pick.version.removeprefix("v") not in there:
            place, file = chart.repository, "charts.yaml"
            finding = findings.ENTRY_GONE(
                name=name, version=pick.version, place=place, near="", file=file
            )
            yield Gap("charts", finding, url)


def compare_kubernetes(
    known: KnownFacts, schedules: Sequence[Reading], others: Sequence[Reading]
) -> Iterator[Gap]:
    """Minors of Kubernetes that the catalog lacks, and other ends of life. The project's own
    schedule takes precedence."""
    merged: dict[str, tuple[date, str]] = {}
    for reading in (*others, *schedules):
        cycles: Cycles = reading.content
        ends = ((minor, end) for minor, end in cycles.items() if end)
        merged |= {minor: (end, reading.source.url) for minor, end in ends}
    for reading in schedules:
        yield from _newer_kubernetes(known, reading)
    minors = known.charts.kubernetes
    oldest = version_tuple(next(iter(minors)))
    for minor, (end, url) in sorted(merged.items(), key=lambda each: version_tuple(each[0])):
        before = minors.get(minor)
        if before == end or version_tuple(minor) < oldest:
            continue
        what = f"Kubernetes {minor}"
        finding = _end(what, end, before, "charts.yaml")
        place: tuple[str, ...] = ("kubernetes", minor) if before else ("kubernetes",)
        value = end.isoformat() if before else {minor: end.isoformat()}
        said = f"  # {url} (read {known.read})"
        edits = (
            DataEdit("helm/charts", place, value, "set" if before else "add"),
            DataEdit("helm/charts", ("kubernetes", minor), said, "append"),
        )
        yield Gap("kubernetes", finding, url, edits)


def _newer_kubernetes(known: KnownFacts, schedule: Reading) -> Iterator[Gap]:
    """A released minor that kubeadm of the catalog does not have. The schedule has no others."""
    newest, packaged = max(schedule.content, key=version_tuple), known.catalog.kubernetes.newest
    if version_tuple(newest) > version_tuple(packaged):
        file = "kubernetes.yaml: newest, pause, requirements"
        finding = findings.UNTRIED_NEWER(
            what="Kubernetes", version=newest, asks="", known=f"{packaged} for kubeadm", file=file
        )
        yield Gap("kubernetes", finding, schedule.source.url)


def unread_findings(unread: Iterable[Unread]) -> list[Finding]:
    """A finding for each host and reason: without a network, every source fails alike."""
    groups: dict[tuple[str, str], list[Unread]] = {}
    for each in unread:
        groups.setdefault((urlsplit(each.url).netloc, each.reason), []).append(each)
    found = []
    for (_, reason), alike in groups.items():
        first, *others = alike
        more = f" and {count_noun(len(others), 'other source')} of this host" if others else ""
        found.append(
            findings.SOURCE_UNREAD(
                title=f"{first.source.title}{more}", url=first.url, reason=reason
            )
        )
    return found


def _end(what: str, end: date, known: date | None, file: str) -> Finding:
    gap = f"The end of life of {what} is {end}; the catalog has {known}"
    if known is None:
        gap = f"The catalog has no {what} (end of life {end})"
    return findings.ENTRY_OLD(gap=gap, file=file)


def compare_runtimes(known: KnownFacts, readings: Iterable[Reading]) -> Iterator[Gap]:
    """Minors of container runtimes that the catalog lacks, and other ends of life."""
    runtimes = {runtime.name: runtime for runtime in known.runtimes.runtimes}
    for reading in readings:
        cycles: Cycles = reading.content
        runtime = runtimes[reading.source.about]
        for minor, end in sorted(cycles.items(), key=lambda each: version_tuple(each[0])):
            if end:
                yield from _of_runtime(known, runtime, minor, end, reading.source.url)


def _of_runtime(
    known: KnownFacts, runtime: MaintainedRuntime, minor: str, end: date, url: str
) -> Iterator[Gap]:
    entry = next((each for each in runtime.minors if each.minor == minor), None)
    oldest = min(version_tuple(each.minor) for each in runtime.minors)
    if version_tuple(minor) < oldest or (entry and entry.end_of_life == end):
        return
    place = ("runtimes", ("name", runtime.name), "minors")
    file = "status/runtime_support"
    finding = _end(
        f"{runtime.name} {minor}", end, entry.end_of_life if entry else None, "runtime_support.yaml"
    )
    new = {"minor": minor, "end_of_life": end.isoformat(), "source": f"{url} (read {known.read})"}
    edits: tuple[DataEdit, ...] = (DataEdit(file, place, new, "add"),)
    if entry:
        said = f"; end of life in {url} (read {known.read})"
        at = (*place, ("minor", minor))
        edits = (
            DataEdit(file, (*at, "end_of_life"), end.isoformat()),
            DataEdit(file, (*at, "source"), said, "append"),
        )
    yield Gap("runtimes", finding, url, edits)
