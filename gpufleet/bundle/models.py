"""The files of a bundle, and its manifest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

MANIFEST_SCHEMA = 1
MANIFEST, SBOM = "manifest.json", "sbom.spdx.json"  # names in the folder of a bundle
CHARTS, WHEELS = "charts", "wheels"  # folders of a bundle
_SHA256 = re.compile(r"[0-9a-f]{64}")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\]")
# image: the manifest that its tag names; layer: the other files of images
FileSort = Literal["package", "metadata", "key", "chart", "image", "layer", "helm", "wheel", "sbom"]


@dataclass(frozen=True, slots=True)
class BundleFile:
    """One file. `path`: below the folder of the bundle; `source`: the URL that it came from."""

    path: str
    sha256: str
    size: int
    source: str
    sort: FileSort
    name: str = ""  # of a package, chart or image
    version: str = ""
    architecture: str = ""
    license: str = ""  # as its package names it, "" if it names none


@dataclass(frozen=True, slots=True)
class BundledRepository:
    """A repository of which the bundle has a part. `setting`: the key that takes the URL of its
    mirror; "" for a repository that the hosts themselves configure."""

    path: str  # below the folder of the bundle
    source: str
    setting: str = ""


@dataclass(frozen=True, slots=True)
class LackingItem:
    """Something that hosts or clusters need and the bundle lacks."""

    what: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class BundlePart:
    """The additions of one host or cluster to a bundle."""

    files: tuple[BundleFile, ...] = ()
    repositories: tuple[BundledRepository, ...] = ()
    lacking: tuple[LackingItem, ...] = ()


@dataclass(frozen=True, slots=True)
class BundleManifest(BundlePart):
    """The content of a bundle. `created`: by which version of gpufleet, and when. `digest`: sha256
    of the manifest's file, to be compared with one that was noted elsewhere."""

    gpufleet: str = ""
    created: str = ""
    digest: str = ""


class NoManifestError(ValueError):
    """The text is not a manifest; the message says why."""


def place_of(url: str) -> str:
    """The path in a bundle for the file at a URL: HOST/PATH or HOST-PORT/PATH. "" if the path is
    not safe, or if the URL has a login or a query, which may be secret."""
    parts = urlsplit(url)
    host = "" if "@" in parts.netloc or parts.query else parts.netloc.replace(":", "-")
    words = [host, *unquote(parts.path).split("/")]
    kept = [word for word in words if word not in ("", ".")]
    wrong = ".." in kept or any(_UNSAFE.search(word) for word in kept)
    return "" if wrong or not host or parts.scheme not in ("http", "https") else "/".join(kept)


def merge_parts(parts: Iterable[BundlePart]) -> BundlePart:
    """The content of several parts, without duplicates and in a stable order."""
    known = list(parts)
    files = {file.path: file for part in known for file in part.files}
    places = {(each.path, each.setting): each for part in known for each in part.repositories}
    lacking = {each.what: each for part in known for each in part.lacking}
    return BundlePart(
        tuple(files[path] for path in sorted(files)),
        tuple(places[place] for place in sorted(places)),
        tuple(lacking[what] for what in sorted(lacking)),
    )


def manifest_text(manifest: BundleManifest) -> str:
    """The manifest's file."""
    data = asdict(manifest)
    del data["digest"]
    return json.dumps({"gpufleet_bundle": MANIFEST_SCHEMA, **data}, indent=1) + "\n"


def parse_manifest(content: bytes) -> BundleManifest:
    """Raises NoManifestError."""
    try:
        data = json.loads(content)
        if data["gpufleet_bundle"] != MANIFEST_SCHEMA:
            raise NoManifestError("its manifest is of another version of gpufleet")
        part = part_of(data)
        _require_safe(part.files)
        return BundleManifest(
            part.files,
            part.repositories,
            part.lacking,
            str(data["gpufleet"]),
            str(data["created"]),
            hashlib.sha256(content).hexdigest(),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        known = isinstance(error, NoManifestError)
        raise NoManifestError(str(error) if known else f"{MANIFEST} is damaged") from error


def part_of(data: Mapping[str, Any]) -> BundlePart:
    """The part from the values of its fields. Raises LookupError, TypeError."""
    return BundlePart(
        tuple(BundleFile(**each) for each in data["files"]),
        tuple(BundledRepository(**each) for each in data["repositories"]),
        tuple(LackingItem(**each) for each in data["lacking"]),
    )


def _require_safe(files: Sequence[BundleFile]) -> None:
    """Raises NoManifestError for a path that leads out of the folder, or a wrong digest."""
    for file in files:
        words = file.path.split("/")
        if not {"", ".", ".."}.isdisjoint(words) or _UNSAFE.search(file.path):
            raise NoManifestError(f"{MANIFEST} names a file outside of the folder")
        if not _SHA256.fullmatch(file.sha256) or type(file.size) is not int:
            raise NoManifestError(f"{MANIFEST} has a wrong digest or size")
