"""What the commands about bundles print. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.filesize import decimal

from gpufleet.bundle.compare import BundleDelta
from gpufleet.bundle.models import MANIFEST_SCHEMA, BundleManifest
from gpufleet.core.findings import Finding
from gpufleet.core.names import count_noun
from gpufleet.core.visible import one_line


def summary_line(manifest: BundleManifest) -> str:
    """Number and size of the files, and the digest of the manifest."""
    size = decimal(sum(file.size for file in manifest.files))
    return f"{count_noun(len(manifest.files), 'file')}, {size}, manifest sha256 {manifest.digest}"


def summary_json(manifest: BundleManifest, found: Sequence[Finding]) -> str:
    """The same as JSON, with the findings."""
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
    files = count_noun(len(delta.added), "file")
    yield f"{files} to add, {decimal(delta.size)}; {len(delta.removed)} to delete"


def delta_json(delta: BundleDelta) -> str:
    """The same as JSON."""
    added = [asdict(file) for file in delta.added]
    whole = {"gpufleet_bundle": MANIFEST_SCHEMA, "added": added, "removed": [*delta.removed]}
    return json.dumps(whole, indent=2)


def key_lines(manifest: BundleManifest, url: str, folder: Path) -> Iterator[str]:
    """How an inventory uses a bundle that is in a folder, and served at a URL."""
    for each in manifest.repositories:
        place = one_line(f"{url}/{each.path}")
        if each.setting:
            yield f'"{each.setting}": "{place}",'
        else:
            yield f"# sources of hosts: {place} instead of {one_line(each.source)}"
    sorts = {file.sort for file in manifest.files}
    if "chart" in sorts:
        yield f'"cluster_chart_dir": "{one_line(str(folder / "charts"))}",'
    if "image" in sorts:
        yield f'"kubernetes_image_archives": ["{one_line(str(folder / "images/*.tar"))}"],'
