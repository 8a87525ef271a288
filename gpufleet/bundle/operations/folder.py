"""The folder of a bundle: begun, finished, read, and copied as a difference."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from gpufleet import __version__
from gpufleet.bundle import findings
from gpufleet.bundle.compare import NO_FILE, BundleDelta
from gpufleet.bundle.lists import valid_until
from gpufleet.bundle.models import (
    MANIFEST,
    SBOM,
    BundleFile,
    BundleManifest,
    BundlePart,
    manifest_text,
    merge_parts,
    parse_manifest,
)
from gpufleet.bundle.operations.store import (
    PARTS_FOLDER,
    WORK_FOLDER,
    earlier_files,
    file_digest,
    store_file,
    stored_parts,
    written_paths,
)
from gpufleet.bundle.sbom import sbom_text
from gpufleet.core.findings import Finding
from gpufleet.core.private_file import lock_folder
from gpufleet.core.secrets import hide_secrets
from gpufleet.core.stopped import Stopped

MANIFEST_MARK, MARK_BYTES = b"gpufleet_bundle", 100  # the mark is in the first bytes of a manifest
OTHER_WRITER = "another process writes this bundle"
FOREIGN_FILES = "it has files, and no manifest of a bundle"


@contextmanager
def writing_bundle(folder: Path) -> Iterator[None]:
    """Make the folder ready, for this process alone. A complete bundle is incomplete from here on;
    its files stay. Raises Stopped for a folder with files of others, and while another process
    writes it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = lock_folder(folder.resolve())  # the folder may be a link
    except OSError as error:
        why = OTHER_WRITER if isinstance(error, BlockingIOError) else error.strerror or str(error)
        raise Stopped(findings.FILE_NOT_KEPT(path=error.filename or folder, why=why)) from error
    try:
        _begin(folder)
        yield
    finally:
        os.close(lock)


def _begin(folder: Path) -> None:
    work = folder / WORK_FOLDER
    try:
        manifest = folder / MANIFEST
        ours = manifest.is_file() and MANIFEST_MARK in manifest.read_bytes()[:MARK_BYTES]
        if any(folder.iterdir()) and not (ours or work.is_dir()):
            raise Stopped(findings.NOT_A_BUNDLE(path=folder, why=FOREIGN_FILES))
        shutil.rmtree(work / PARTS_FOLDER, ignore_errors=True)
        work.mkdir(exist_ok=True)
        if (folder / MANIFEST).is_file():
            os.replace(folder / MANIFEST, work / MANIFEST)
    except OSError as error:
        why = error.strerror or str(error)
        raise Stopped(findings.FILE_NOT_KEPT(path=error.filename or folder, why=why)) from error


def finish_bundle(folder: Path, further: Sequence[BundlePart] = ()) -> BundleManifest:
    """Write the bill of materials, delete files that only the earlier bundle had, and write the
    manifest last. Raises Stopped."""
    try:
        whole = merge_parts([*stored_parts(folder), *further])
        created = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        bill = _store_text(folder, SBOM, sbom_text(whole.files, __version__, created))
        files = tuple(sorted((*whole.files, bill), key=lambda file: file.path))
        made = BundleManifest(files, whole.repositories, whole.lacking, __version__, created)
        _delete_stale(folder, made)
        manifest = _store_text(folder, MANIFEST, manifest_text(made))
        shutil.rmtree(folder / WORK_FOLDER)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Stopped(findings.FILE_NOT_KEPT(path=MANIFEST, why=why)) from error
    return replace(made, digest=manifest.sha256)


def _store_text(folder: Path, name: str, text: str) -> BundleFile:
    data = hide_secrets(text).encode()
    file = BundleFile(name, hashlib.sha256(data).hexdigest(), len(data), "", "sbom")
    store_file(folder, file, [data])
    return file


def _delete_stale(folder: Path, made: BundleManifest) -> None:
    """Delete what this bundle does not name, of the earlier one and of runs that did not end. Files
    of the user stay."""
    there = written_paths(folder) | {file.path for file in earlier_files(folder)}
    for name in sorted(there - {file.path for file in made.files}):
        if not name.startswith(WORK_FOLDER):
            (folder / name).unlink(missing_ok=True)
        for parent in (folder / name).parents:
            with suppress(OSError):
                parent.rmdir()  # only an empty one


def read_bundle(folder: Path) -> BundleManifest:
    """The manifest of a complete bundle. Raises Stopped."""
    try:
        return parse_manifest((folder / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        why = f"{MANIFEST}: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise Stopped(findings.NOT_A_BUNDLE(path=folder, why=why)) from error


def expiring_lists(folder: Path, made: BundleManifest) -> list[Finding]:
    """The finding about the list of an apt repository that expires first, if one does."""
    dates = {}
    for file in made.files:
        if file.sort == "metadata" and file.path.endswith(("/InRelease", "/Release")):
            try:
                text = (folder / file.path).read_text("utf-8", "replace")
            except OSError:
                continue  # `bundle verify` names it
            if date := valid_until(text):
                dates[date] = file.path
    if not dates:
        return []
    first = min(dates)
    return [findings.LISTS_EXPIRE(path=dates[first], date=f"{first:%Y-%m-%d %H:%M} UTC")]


def read_digests(folder: Path) -> dict[str, str]:
    """Path -> sha256 of everything in the folder but the manifest. Raises Stopped."""
    found = {}
    try:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                found[name] = NO_FILE
            elif path.is_file() and name != MANIFEST:
                found[name] = file_digest(path)
    except OSError as error:
        why = f"{error.filename}: {error.strerror}"
        raise Stopped(findings.NOT_A_BUNDLE(path=folder, why=why)) from error
    return found


def write_delta(folder: Path, delta: BundleDelta, archive: Path) -> None:
    """Write what a delta adds, and the new manifest, as a tar archive. Each file is checked while
    it is written. Raises Stopped."""
    temporary = archive.with_name(f".{archive.name}.part")
    try:
        with tarfile.open(temporary, "w") as output:
            for file in delta.added:
                data = (folder / file.path).read_bytes()
                digest = hashlib.sha256(data).hexdigest()
                if digest != file.sha256:
                    raise Stopped(
                        findings.FILE_NOT_KEPT(path=file.path, why="it differs from the manifest")
                    )
                _add(output, file.path, data)
            _add(output, MANIFEST, (folder / MANIFEST).read_bytes())
        os.replace(temporary, archive)
    except OSError as error:
        why = error.strerror or str(error)
        raise Stopped(findings.FILE_NOT_KEPT(path=error.filename or archive, why=why)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _add(output: tarfile.TarFile, path: str, data: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(data), 0o644
    output.addfile(entry, io.BytesIO(data))
