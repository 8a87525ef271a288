"""The files of a bundle that apt names, and that the lists of rpm repositories name. Pure."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from xml.etree import ElementTree

from gpufleet.bundle.models import BundleFile, place_of
from gpufleet.core.limits import METADATA_LIMIT
from gpufleet.core.secrets import plain_urls

_URI = re.compile(r"^'(?P<url>[^']+)' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})$")


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file on a host. `base`: URL of its repository."""

    path: str
    sha256: str
    size: int
    url: str
    base: str = ""


def apt_packages(lines: Iterable[str]) -> tuple[BundleFile, ...]:
    """The packages that `apt-get --print-uris` lists with sha256. The path is "" if the address
    does not begin with http or https."""
    found = filter(None, map(_URI.match, lines))
    return tuple(dict.fromkeys(_apt_package(each) for each in found))


def without_sha256(lines: Iterable[str]) -> list[str]:
    """Addresses of packages whose archive lists no sha256."""
    return [line.split("'")[1] for line in lines if line.startswith("'") and not _URI.match(line)]


def _apt_package(found: re.Match[str]) -> BundleFile:
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


def has_package(base: str, packages: Iterable[BundleFile]) -> bool:
    """True if one of the packages is below the address of a repository."""
    place = f"{place_of(base)}/"
    return any(file.path.startswith(place) for file in packages)


CACHED = re.compile(r"/(?P<id>[^/]+)-[0-9a-f]{16}/(?P<path>repodata/[^/]+)$")  # dnf's cache
PRIMARY = re.compile(r"primary\.xml(\.gz)?$")
_REPOSITORY = re.compile(r"^Repo-(?P<key>id|baseurl) *: (?P<value>[^ ]+)")
_COMMON = "{http://linux.duke.edu/metadata/common}"  # XML namespaces
LIST_ERRORS = (ElementTree.ParseError, OSError, EOFError, zlib.error, ValueError)
_RPM = "{http://linux.duke.edu/metadata/rpm}"


@dataclass(frozen=True, slots=True)
class RpmRepository:
    """A repository in the cache of dnf. `url`: address of its files, with a slash at the end."""

    url: str
    files: tuple[HostFile, ...]

    @property
    def primary(self) -> HostFile | None:
        """Its list of packages."""
        return next((each for each in self.files if PRIMARY.search(each.path)), None)


def repository_urls(lines: Iterable[str]) -> dict[str, str]:
    """Repository -> the URL of its files, as `repolist -v` prints them."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        if match := _REPOSITORY.match(line):
            if match["key"] == "id":
                name = match["value"].split("/")[0]
            else:
                found[name] = match["value"].rstrip(",/") + "/"
    return found


def cached_repositories(
    files: Iterable[HostFile], urls: Mapping[str, str]
) -> tuple[RpmRepository, ...]:
    """The repositories whose metadata is in the cache, in the order of their URLs."""
    found: dict[str, list[HostFile]] = {}
    for file in files:
        match = CACHED.search(file.path)
        if match and match["id"] in urls:
            url = urls[match["id"]]
            each = HostFile(file.path, file.sha256, file.size, url + match["path"], url)
            found.setdefault(url, []).append(each)
    return tuple(RpmRepository(url, tuple(found[url])) for url in sorted(found))


def listed_packages(url: str, primary: bytes, path: str) -> dict[str, BundleFile]:
    """sha256 -> package, of a repository's list. Raises LIST_ERRORS."""
    root = ElementTree.parse(io.BytesIO(_plain(primary, path))).getroot()
    known = (_listed_package(url, each) for each in root.iter(f"{_COMMON}package"))
    return {each.sha256: each for each in known if each}


def _plain(data: bytes, path: str) -> bytes:
    """The text of a list, up to the limit of a repository's file."""
    if not path.endswith(".gz"):
        return data
    with gzip.open(io.BytesIO(data)) as file:
        return file.read(METADATA_LIMIT.bytes)


def _listed_package(url: str, element: ElementTree.Element) -> BundleFile | None:
    """A package of a list, or None without a sha256, a location or a size."""
    names = ("checksum", "location", "size")
    digest, location, size = (element.find(f"{_COMMON}{name}") for name in names)
    if digest is None or location is None or size is None or digest.get("type") != "sha256":
        return None
    source = url + location.get("href", "")
    return BundleFile(
        place_of(source),
        digest.text or "",
        int(size.get("package", "0")),
        plain_urls(source),
        "package",
        element.findtext(f"{_COMMON}name", ""),
        _version(element.find(f"{_COMMON}version")),
        element.findtext(f"{_COMMON}arch", ""),
        element.findtext(f"{_COMMON}format/{_RPM}license", ""),
    )


def list_file(file: HostFile) -> BundleFile:
    """A file of metadata in the bundle."""
    return BundleFile(place_of(file.url), file.sha256, file.size, plain_urls(file.url), "metadata")


def _version(element: ElementTree.Element | None) -> str:
    """[EPOCH:]VERSION-RELEASE, or "" if it is missing."""
    if element is None:
        return ""
    epoch, named = element.get("epoch", "0"), f"{element.get('ver')}-{element.get('rel')}"
    return named if epoch == "0" else f"{epoch}:{named}"


def valid_until(text: str) -> datetime | None:
    """The day on which the Release file of an apt repository expires, in UTC; None without one.

    Source: https://wiki.debian.org/DebianRepository/Format#Date.2C_Valid-Until (read 2026-11-30)
    """
    match = re.search(r"^Valid-Until: (.+)$", text, re.MULTILINE)
    try:
        found = parsedate_to_datetime(match[1]) if match else None
    except ValueError:
        return None
    return found and found.replace(tzinfo=timezone.utc)
