"""Copies images into a bundle with skopeo, which uses the user's own logins of registries."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from gpufleet.bundle.images import ImageName, parse_image, read_image_manifest
from gpufleet.bundle.models import BundleFile, BundlePart, LackingItem
from gpufleet.bundle.operations.store import (
    earlier_files,
    file_digest,
    put_file,
    show_step,
    work_folder,
)
from gpufleet.core.process import Process, ProgramResult
from gpufleet.core.quoting import quote_last_line
from gpufleet.core.visible import one_line

SKOPEO = "skopeo"
LOOK_SECONDS, COPY_SECONDS = 120, 3600  # limits for one image
COPY = ("copy", "--all", "--preserve-digests")  # every platform, each byte as in the registry
# files of skopeo's `dir:`, https://github.com/containers/image/blob/main/directory/directory_transport.go
# (read 2026-11-30)
TOP, INSTANCE = "manifest.json", ".manifest.json"
OLD_SKOPEO_REMEDY = "Install skopeo 1.6 or newer, and run the command again."
NO_COPY_REMEDY = "Log in to its registry or correct its name, and run the command again."


def copy_images(folder: Path, images: Iterable[str]) -> BundlePart:
    """Copy images that the bundle does not have yet. Images without a copy are in `lacking`, also
    if the bundle keeps an earlier copy. Raises Stopped if the folder cannot be written."""
    program = shutil.which(SKOPEO)
    earlier = {file.name: file.version for file in earlier_files(folder) if file.sort == "image"}
    files: list[BundleFile] = []
    lacking = []
    for image in images:
        found = _copied(folder, image, program) if program else _no_program(image)
        if isinstance(found, LackingItem):
            kept = stored_image(folder, image, earlier.get(image, ""))
            files += kept
            what = f"a new copy of {image}, but an earlier one" if kept else f"image {image}"
            lacking.append(replace(found, what=what))
        else:
            files += found
    return BundlePart(tuple(files), (), tuple(lacking))


def _no_program(image: str) -> LackingItem:
    remedy = "Install skopeo and run the command again, or mirror the image yourself."
    return LackingItem(image, "this machine has no skopeo", remedy)


def _copied(folder: Path, image: str, program: str) -> tuple[BundleFile, ...] | LackingItem:
    """The files of an image, in the version that its registry has now."""
    name = parse_image(image)
    look = [program, "inspect", "--raw", name.at(name.reference)]
    raw = Process(look, timeout=LOOK_SECONDS, bound=True).wait()
    if not raw.ok:
        return _not_copied(image, raw)
    digest = f"sha256:{hashlib.sha256(raw.stdout.encode()).hexdigest()}"
    if there := stored_image(folder, image, digest):
        return there
    show_step(one_line(f"Copying {image}"))
    with work_folder(folder, f"the image {image}") as work:
        copy = [program, *COPY, name.at(digest), f"dir:{work}"]
        done = Process(copy, timeout=COPY_SECONDS, bound=True).wait()
        if not done.ok:
            return _not_copied(image, done)
        _keep(work, folder, name, digest)
    files = stored_image(folder, image, digest)
    return files or LackingItem(image, "its copy is incomplete", NO_COPY_REMEDY)


def _keep(copy: Path, folder: Path, name: ImageName, digest: str) -> None:
    """Move skopeo's files to their places. The manifest of the tag comes last."""
    place, top = name.folder, copy / TOP
    for file in [top, *copy.glob(f"*{INSTANCE}")]:
        for blob in read_image_manifest(file.read_bytes()).blobs:
            if (found := copy / blob.removeprefix("sha256:")).is_file():
                put_file(folder, found, f"{place}/blobs/{blob}")
        if file != top:
            hexes = file.name.removesuffix(INSTANCE)
            put_file(folder, file, f"{place}/manifests/sha256:{hexes}")
    if ":" not in name.reference:
        tag = shutil.copyfile(top, copy / "tag")
        put_file(folder, tag, f"{place}/manifests/{name.reference}")
    put_file(folder, top, f"{place}/manifests/{digest}")


def stored_image(folder: Path, image: str, digest: str) -> tuple[BundleFile, ...]:
    """The files of an image in the bundle; () if one of them is missing or damaged."""
    name = parse_image(image)
    try:
        files = {file.path: file for file in _stored_parts(folder, name, digest)}
        path = f"{name.folder}/manifests/{name.reference}"
        top = _stored_file(folder, name, path, digest)
    except (OSError, ValueError):
        return ()
    files[path] = replace(top, sort="image", name=image, version=digest)
    return tuple(files.values())


def _stored_parts(folder: Path, name: ImageName, digest: str) -> Iterator[BundleFile]:
    """A manifest in the bundle, and all that it names. Raises OSError and ValueError."""
    file = _stored_file(folder, name, f"{name.folder}/manifests/{digest}", digest)
    yield file
    parts = read_image_manifest((folder / file.path).read_bytes())
    for each in parts.manifests:
        yield from _stored_parts(folder, name, each)
    for each in parts.blobs:
        yield _stored_file(folder, name, f"{name.folder}/blobs/{each}", each)


def _stored_file(folder: Path, name: ImageName, path: str, digest: str) -> BundleFile:
    kind, _, sha256 = digest.partition(":")
    if kind != "sha256" or file_digest(folder / path) != sha256:
        raise ValueError("its digest is another one")
    size = (folder / path).stat().st_size
    return BundleFile(path, sha256, size, name.at(digest), "layer")


def _not_copied(image: str, result: ProgramResult) -> LackingItem:
    why = result.why or quote_last_line(result.stderr) or "skopeo failed"
    remedy = OLD_SKOPEO_REMEDY if "unknown flag" in why else NO_COPY_REMEDY
    return LackingItem(image, f"skopeo: {why}", remedy)
