"""Bundles in folders, for their tests."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gpufleet.bundle.models import (
    BundledRepository,
    BundleFile,
    BundleManifest,
    BundlePart,
    LackingItem,
)
from gpufleet.bundle.operations.folder import finish_bundle, writing_bundle
from gpufleet.bundle.operations.store import store_file, store_part

CONTENTS = {"a.example.com/repos/x/one.deb": b"one", "a.example.com/repos/x/InRelease": b"signed"}
REPOSITORIES = (
    BundledRepository("a.example.com/repos", "https://a.example.com/repos", "driver_repo_url"),
    BundledRepository("b.example.com/ubuntu", "http://b.example.com/ubuntu"),
)
NO_SKOPEO = LackingItem("image x:1", "this machine has no skopeo", "Install skopeo.")


def file_of(path: str, data: bytes, **more: str) -> BundleFile:
    """The entry of a package with this content."""
    digest = hashlib.sha256(data).hexdigest()
    known = {"name": path.rpartition("/")[2].split(".")[0], "version": "1.0", **more}
    return BundleFile(path, digest, len(data), f"https://{path}", "package", **known)


def make_bundle(
    folder: Path, contents: dict[str, bytes] = CONTENTS, *lacking: LackingItem
) -> BundleManifest:
    """A complete bundle, or the folder's next one."""
    with writing_bundle(folder):
        for path, data in contents.items():
            store_file(folder, file_of(path, data), [data])
        files = tuple(file_of(path, data) for path, data in contents.items())
        store_part(folder, "host", BundlePart(files, REPOSITORIES, lacking))
        return finish_bundle(folder)
