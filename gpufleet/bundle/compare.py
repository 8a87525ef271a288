"""Compares a bundle with its manifest, and two manifests; makes the text to print. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.filesize import decimal

from gpufleet.bundle import findings
from gpufleet.bundle.images import REGISTRY_FOLDER, parse_image
from gpufleet.bundle.models import (
    CHARTS,
    MANIFEST_SCHEMA,
    WHEELS,
    BundleFile,
    BundleManifest,
    BundlePart,
)
from gpufleet.core.findings import Finding
from gpufleet.core.names import count_noun
from gpufleet.core.visible import one_line

NO_FILE = "none: it is no regular file"  # in the place of a digest


def find_damage(manifest: BundleManifest, there: Mapping[str, str]) -> Iterator[Finding]:
    """The differences. `there`: path -> sha256 of every file in the folder but the manifest."""
    known = {file.path: file.sha256 for file in manifest.files}
    for path in sorted({*known, *there}):
        if path not in there:
            how = "is in the manifest, but not in the folder"
        elif path not in known:
            how = "is in the folder, but not in the manifest"
        elif known[path] != there[path]:
            how = f"has the sha256 {there[path]}; the manifest has {known[path]}"
        else:
            continue
        yield findings.BUNDLE_FILE_DIFFERS(path=path, how=how)


def lacking_findings(part: BundlePart) -> list[Finding]:
    """A finding for each item that the bundle lacks."""
    return [
        findings.NOT_IN_BUNDLE(what=each.what, why=each.why, remedy=each.remedy)
        for each in part.lacking
    ]


@dataclass(frozen=True, slots=True)
class BundleDelta:
    """The difference of two bundles."""

    added: tuple[BundleFile, ...]  # files that the old bundle lacks, or has with other content
    removed: tuple[str, ...]  # paths that the new bundle lacks


def summary_line(manifest: BundleManifest) -> str:
    """Number and size of the files, and the digest of the manifest."""
    size = decimal(sum(file.size for file in manifest.files))
    return f"{count_noun(len(manifest.files), 'file')}, {size}, manifest sha256 {manifest.digest}"


def summary_json(manifest: BundleManifest, found: Sequence[Finding]) -> str:
    """The JSON of a bundle, with the findings."""
    whole = {
        "gpufleet_bundle": MANIFEST_SCHEMA,
        "manifest": manifest.digest,
        "files": len(manifest.files),
        "bytes": sum(file.size for file in manifest.files),
        "findings": [each.as_dict() for each in found],
    }
    return json.dumps(whole, indent=2)


def delta_lines(delta: BundleDelta) -> Iterator[str]:
    """One line for each file, and the size."""
    yield from (f"+ {one_line(file.path)}" for file in delta.added)
    yield from (f"- {one_line(path)}" for path in delta.removed)
    size = decimal(sum(file.size for file in delta.added))
    yield f"{count_noun(len(delta.added), 'file')} to add, {size}; {len(delta.removed)} to delete"


def delta_json(delta: BundleDelta) -> str:
    """The JSON of a difference."""
    added = [asdict(file) for file in delta.added]
    whole = {"gpufleet_bundle": MANIFEST_SCHEMA, "added": added, "removed": [*delta.removed]}
    return json.dumps(whole, indent=2)


def compare_bundles(old: BundleManifest, new: BundleManifest) -> BundleDelta:
    """The changes that turn an old bundle into the new one."""
    known = {file.path: file.sha256 for file in old.files}
    left = {file.path for file in new.files}
    return BundleDelta(
        tuple(file for file in new.files if known.get(file.path) != file.sha256),
        tuple(sorted(set(known) - left)),
    )


def key_lines(manifest: BundleManifest, url: str, folder: Path) -> Iterator[str]:
    """How an inventory uses a bundle that is in a folder, and served at a URL."""
    for each in manifest.repositories:
        place = one_line(f"{url}/{each.path}")
        if each.setting:
            yield f'"{each.setting}": "{place}",'
        else:
            yield f"# sources of hosts: {place} instead of {one_line(each.source)}"
    if any(file.sort == "chart" for file in manifest.files):
        yield f'"cluster_chart_dir": "{one_line(str(folder / CHARTS))}",'
    yield from mirror_lines(manifest, f"{url}/{REGISTRY_FOLDER}")
    if any(file.sort == "wheel" for file in manifest.files):
        wheels = shlex.quote(one_line(str(folder / WHEELS)))
        yield f"# gpufleet: pip install --no-index --find-links {wheels} gpufleet"


def mirror_lines(manifest: BundleManifest, api: str) -> Iterator[str]:
    """The key with which nodes pull images from a registry; nothing without images. `api`: the URL
    below which the registry has a folder for each original."""
    names = [parse_image(file.name) for file in manifest.files if file.sort == "image"]
    mirrors = {name.registry: f"{api}/{name.place}" for name in names}
    if mirrors:
        yield f'"kubernetes_registry_mirrors": {one_line(json.dumps(mirrors))},'
