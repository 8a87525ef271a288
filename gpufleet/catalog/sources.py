"""Lists the sources of the catalog's facts. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import date
from urllib.parse import urlsplit

from gpufleet.catalog.models import LiveSource, SourceAddresses, SourceKind, Subject
from gpufleet.containerd.models import DockerRepository
from gpufleet.core.entries import Style
from gpufleet.helm.chart_models import ChartCatalog
from gpufleet.node.catalog import Catalog
from gpufleet.packages.catalog import Key

LIST_STYLES: tuple[Style, ...] = ("deb", "rpm")
LISTS: dict[Style, str] = {"deb": "Packages", "rpm": "repodata/repomd.xml"}


def list_sources(
    catalog: Catalog,
    charts: ChartCatalog,
    addresses: SourceAddresses,
    only: Collection[Subject] = (),
) -> list[LiveSource]:
    """Every source of these subjects, or of all. Each address occurs once."""
    found = (
        *_drivers(catalog, addresses),
        *_toolkit(catalog),
        *_keys(catalog),
        *_charts(charts, addresses),
        *_releases(addresses),
    )
    return [source for source in found if not only or source.subject in only]


def mirrored_url(url: str, mirror: str) -> str:
    """The address of a source below a mirror, which has a folder for each host.

    Example: https://charts.example/gpu/index.yaml -> MIRROR/charts.example/gpu/index.yaml
    """
    if not mirror:
        return url
    parts = urlsplit(url)
    return f"{mirror.rstrip('/')}/{parts.netloc}{parts.path}"


def _drivers(catalog: Catalog, addresses: SourceAddresses) -> Iterator[LiveSource]:
    for place in catalog.distributions:
        for architecture, folder in place.architectures.items():
            base = f"{catalog.cuda.base}/{place.code}/{folder}/"
            title = f"drivers for {place.title} ({architecture})"
            url, kind = base + LISTS[place.style], place.style
            yield LiveSource("drivers", kind, place.code, title, url, architecture)
    url = addresses.releases["drivers"].url
    yield LiveSource("drivers", "releases", "drivers", "releases of drivers", url)


def _toolkit(catalog: Catalog) -> Iterator[LiveSource]:
    toolkit = catalog.toolkit
    for architecture, folders in toolkit.architectures.items():
        for style in LIST_STYLES:
            path = toolkit.repository.paths[style].format(architecture=folders[style])
            url = f"{toolkit.repository.base}/{path}{LISTS[style]}"
            title = f"container toolkit, {style} ({architecture})"
            yield LiveSource("toolkit", style, "toolkit", title, url, architecture)


def list_keys(catalog: Catalog) -> dict[str, tuple[Key, str]]:
    """The name of each repository key -> the catalog's entry, and its address."""
    found: dict[str, tuple[Key, str]] = {}
    kept = sorted(catalog.distributions, key=lambda place: place.end_of_life or date.max)
    for place in reversed(kept):  # a repository of an old distribution may be gone
        folder = next(iter(place.architectures.values()))
        url = f"{catalog.cuda.base}/{place.code}/{folder}/{place.key}"
        found.setdefault(f"drivers {place.key}", (catalog.cuda.key(place.key), url))
    toolkit, kubernetes = catalog.toolkit.repository, catalog.kubernetes.repository
    found["container toolkit"] = (toolkit.key, f"{toolkit.base}/{toolkit.key.file}")
    path = kubernetes.paths["deb"].format(minor=catalog.kubernetes.newest)
    found["Kubernetes"] = (kubernetes.key, f"{kubernetes.base}/{path}{kubernetes.key.file}")
    found |= _docker_keys(catalog.containerd.docker, catalog)
    return found


def _docker_keys(docker: DockerRepository, catalog: Catalog) -> dict[str, tuple[Key, str]]:
    styles = {place.code: place.style for place in catalog.distributions}
    found = {}
    for place in docker.places:
        key = docker.keys[styles[place.codes[0]]]
        url = f"{docker.base}/{place.folder}/{key.file}"
        found[f"Docker, {place.folder}"] = (key, url)
    return found


def _keys(catalog: Catalog) -> Iterator[LiveSource]:
    for name, (_, url) in list_keys(catalog).items():
        yield LiveSource("keys", "key", name, f"key of {name}", url)


def _charts(charts: ChartCatalog, addresses: SourceAddresses) -> Iterator[LiveSource]:
    for repository in dict.fromkeys(chart.repository for chart in charts.charts.values()):
        if not repository.startswith("oci://"):
            title = f"charts of {repository}"
            yield LiveSource("charts", "index", repository, title, f"{repository}/index.yaml")
    for name, address in addresses.charts.items():
        yield LiveSource("charts", "chart", name, f"chart {name}", address.url)


def _releases(addresses: SourceAddresses) -> Iterator[LiveSource]:
    rows: tuple[tuple[Subject, SourceKind, str], ...] = (
        ("kubernetes", "schedule", "kubernetes"),
        ("kubernetes", "cycles", "kubernetes-ends"),
        ("runtimes", "cycles", "containerd"),
    )
    for subject, kind, name in rows:
        url = addresses.releases[name].url
        yield LiveSource(subject, kind, name, f"releases of {name}", url)
