"""The files of a bundle that apt names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpufleet.bundle.models import BundleFile, place_of
from gpufleet.core.secrets import plain_urls

URI = re.compile(r"^'(?P<url>[^']+)' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})$")


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file on a host. `base`: URL of its repository."""

    path: str
    sha256: str
    size: int
    url: str
    base: str = ""


def apt_packages(lines: Iterable[str]) -> tuple[BundleFile, ...]:
    """The packages that `apt-get --print-uris` lists with sha256. One without a place has the path
    "", because its address is no web address."""
    found = filter(None, map(URI.match, lines))
    return tuple(dict.fromkeys(_package(each) for each in found))


def without_sha256(lines: Iterable[str]) -> list[str]:
    """Addresses of packages whose archive lists no sha256."""
    return [line.split("'")[1] for line in lines if line.startswith("'") and not URI.match(line)]


def _package(found: re.Match[str]) -> BundleFile:
    name, version, rest = [*found["file"].split("_"), "", ""][:3]
    return BundleFile(
        place_of(found["url"]),
        found["sha256"],
        int(found["size"]),
        plain_urls(found["url"]),
        "package",
        name,
        version.replace("%3a", ":"),
        rest.removesuffix(".deb"),
    )


def read_host_files(lines: Iterable[str], word: str) -> Iterator[HostFile]:
    """Lines `WORD SHA256 SIZE PATH URL BASE` of a script."""
    for line in lines:
        parts = line.split(" ")
        if len(parts) == 6 and parts[0] == word and parts[2].isdecimal():
            yield HostFile(parts[3], parts[1], int(parts[2]), parts[4], parts[5])


def used_lists(lists: Iterable[HostFile], packages: Sequence[BundleFile]) -> list[HostFile]:
    """The lists of the repositories that have one of the packages."""
    places = [file.path for file in packages]
    return [
        each for each in lists if any(path.startswith(f"{place_of(each.base)}/") for path in places)
    ]


def list_file(file: HostFile) -> BundleFile:
    """A file of metadata in the bundle."""
    return BundleFile(place_of(file.url), file.sha256, file.size, plain_urls(file.url), "metadata")
