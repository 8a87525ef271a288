"""Copies images into a bundle with skopeo, which uses the user's own logins of registries."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from gpufleet.bundle import findings
from gpufleet.bundle.images import image_path
from gpufleet.bundle.models import BundleFile, BundlePart, LackingItem
from gpufleet.bundle.operations.store import WORK_FOLDER, earlier_files, file_digest, has_file
from gpufleet.core.process import Process, ProgramResult
from gpufleet.core.quoting import quote_last_line
from gpufleet.core.stopped import Stopped

SKOPEO = "skopeo"
LOOK_SECONDS, COPY_SECONDS = 120, 3600  # limits for one image


def copy_images(folder: Path, images: Iterable[str]) -> BundlePart:
    """Copy images that the bundle does not have yet. Images without a copy are in `lacking`. Raises
    Stopped if the folder cannot be written."""
    program = shutil.which(SKOPEO)
    earlier = {file.path: file for file in earlier_files(folder)}
    files, lacking = [], []
    for image in images:
        found = _copied(folder, image, program, earlier) if program else _no_program(image)
        if isinstance(found, BundleFile):
            files.append(found)
        else:
            lacking.append(found)
    return BundlePart(tuple(files), (), tuple(lacking))


def _no_program(image: str) -> LackingItem:
    remedy = "Install skopeo and run the command again, or mirror the image yourself."
    return LackingItem(f"image {image}", "this machine has no skopeo", remedy)


def _copied(
    folder: Path, image: str, program: str, earlier: dict[str, BundleFile]
) -> BundleFile | LackingItem:
    """The archive of an image, for the digest that its registry has now."""
    look = [program, "inspect", "--raw", f"docker://{image}"]
    raw = Process(look, timeout=LOOK_SECONDS).wait()
    if not raw.ok:
        return _not_copied(image, raw)
    digest = f"sha256:{hashlib.sha256(raw.stdout.encode()).hexdigest()}"
    path = image_path(image)
    known = earlier.get(path)
    if known and known.version == digest and has_file(folder, known):
        return known
    try:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder / WORK_FOLDER) as work:
            archive = Path(work, "image.tar")
            target = f"oci-archive:{archive}:{image}"
            source = f"docker://{_name(image)}@{digest}"
            copy = [program, "copy", "--all", source, target]
            done = Process(copy, timeout=COPY_SECONDS).wait()
            if not done.ok:
                return _not_copied(image, done)
            sha256, size = file_digest(archive), archive.stat().st_size
            os.replace(archive, folder / path)
    except OSError as error:
        why = error.strerror or str(error)
        raise Stopped(findings.FILE_NOT_KEPT(path=path, why=why)) from error
    return BundleFile(path, sha256, size, f"docker://{image}", "image", image, digest)


def _name(image: str) -> str:
    """The image without its tag and digest."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def _not_copied(image: str, result: ProgramResult) -> LackingItem:
    why = result.why or quote_last_line(result.stderr) or "skopeo failed"
    remedy = "Log in to its registry or correct its name, and run the command again."
    return LackingItem(f"image {image}", f"skopeo: {why}", remedy)
