"""Compares a bundle with its manifest, and two manifests. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpufleet.bundle import findings
from gpufleet.bundle.models import BundleFile, BundleManifest, BundlePart
from gpufleet.core.findings import Finding

NO_FILE = "none: it is no regular file"  # in the place of a digest


def damage_of(manifest: BundleManifest, there: Mapping[str, str]) -> list[Finding]:
    """What differs. `there`: path -> sha256 of every file in the folder but the manifest."""
    return list(_damage(manifest, there))


def _damage(manifest: BundleManifest, there: Mapping[str, str]) -> Iterator[Finding]:
    known = {file.path: file.sha256 for file in manifest.files}
    for path in sorted({*known, *there}):
        if path not in there:
            yield findings.FILE_MISSING(path=path)
        elif path not in known:
            yield findings.FILE_ADDED(path=path)
        elif known[path] != there[path]:
            yield findings.FILE_CHANGED(path=path, found=there[path], wanted=known[path])


def lacking_findings(part: BundlePart) -> list[Finding]:
    """What hosts or clusters need and the bundle lacks."""
    return [
        findings.NOT_IN_BUNDLE(what=each.what, why=each.why, remedy=each.remedy)
        for each in part.lacking
    ]


@dataclass(frozen=True, slots=True)
class BundleDelta:
    """The difference of two bundles."""

    added: tuple[BundleFile, ...]  # files that the old bundle lacks, or has with other content
    removed: tuple[str, ...]  # paths that the new bundle lacks

    @property
    def size(self) -> int:
        return sum(file.size for file in self.added)


def compare_bundles(old: BundleManifest, new: BundleManifest) -> BundleDelta:
    """What an old bundle needs to become the new one."""
    known = {file.path: file.sha256 for file in old.files}
    left = {file.path for file in new.files}
    return BundleDelta(
        tuple(file for file in new.files if known.get(file.path) != file.sha256),
        tuple(sorted(set(known) - left)),
    )
