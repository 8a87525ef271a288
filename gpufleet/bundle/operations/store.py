"""Files of a bundle on this machine: each arrives under a temporary name, and is checked first."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from gpufleet.bundle import findings
from gpufleet.bundle.models import (
    MANIFEST,
    BundleFile,
    BundlePart,
    NoManifestError,
    parse_manifest,
    part_of,
)
from gpufleet.core.limits import MIB
from gpufleet.core.live import is_quiet
from gpufleet.core.stopped import Stopped

FOLDER_VARIABLE = "GPUFLEET_BUNDLE"  # names the folder of the bundle to the deploy
WORK_FOLDER = ".gpufleet-bundle"  # in the bundle, until it is complete
PARTS_FOLDER = "parts"  # below it: the additions of each host
WRITTEN = (
    "written"  # below it: the paths that runs wrote since the last complete bundle, one a line
)
READ_BYTES = MIB  # at once, of a file on this machine


def file_digest(path: Path) -> str:
    """The sha256 of a file. Raises OSError."""
    digest = hashlib.sha256()
    for data in _pieces(path):
        digest.update(data)
    return digest.hexdigest()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(partial(file.read, READ_BYTES), b"")


def has_file(folder: Path, file: BundleFile) -> bool:
    """True if the bundle has this file, with its size and digest."""
    path = folder / file.path
    try:
        same = not path.is_symlink() and path.stat().st_size == file.size
        return same and file_digest(path) == file.sha256
    except OSError:
        return False


def store_file(folder: Path, file: BundleFile, pieces: Iterable[bytes]) -> None:
    """Write a file from its pieces, if their digest is the expected one. Raises Stopped."""
    work, temporary = folder / WORK_FOLDER, ""
    try:
        work.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=work)
        digest = hashlib.sha256()
        with os.fdopen(handle, "wb") as output:
            for piece in pieces:
                digest.update(piece)
                output.write(piece)
        if digest.hexdigest() != file.sha256:
            why = f"its sha256 is {digest.hexdigest()} instead of {file.sha256}"
            raise Stopped(findings.FILE_NOT_KEPT(path=file.path, why=why))
        os.chmod(temporary, 0o644)
        put_file(folder, Path(temporary), file.path)
    except OSError as error:
        why = error.strerror or str(error)
        raise Stopped(findings.FILE_NOT_KEPT(path=file.path, why=why)) from error
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def put_file(folder: Path, source: Path, path: str) -> None:
    """Move a file to its path in the bundle, and note the path first. Raises OSError."""
    with (folder / WORK_FOLDER / WRITTEN).open("a") as noted:
        noted.write(f"{path}\n")
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    os.replace(source, folder / path)


def written_paths(folder: Path) -> set[str]:
    """The paths that runs wrote since the last complete bundle. Raises OSError."""
    noted = folder / WORK_FOLDER / WRITTEN
    return set(noted.read_text().splitlines()) if noted.exists() else set()


def store_path(folder: Path, file: BundleFile, path: Path) -> None:
    """Copy a file of this machine, unless the bundle has it. Raises Stopped."""
    if not has_file(folder, file):
        store_file(folder, file, _pieces(path))


def show_step(line: str) -> None:
    """Print what takes its time, on standard error."""
    if not is_quiet():
        with suppress(OSError):
            click.echo(line, err=True)


@contextmanager
def work_folder(folder: Path, what: str) -> Iterator[Path]:
    """A temporary folder in the bundle, to make `what` in it. An OSError becomes Stopped."""
    try:
        (folder / WORK_FOLDER).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder / WORK_FOLDER) as work:
            yield Path(work)
    except OSError as error:
        why = error.strerror or str(error)
        raise Stopped(findings.FILE_NOT_KEPT(path=what, why=why)) from error


def earlier_files(folder: Path) -> tuple[BundleFile, ...]:
    """The files of the complete bundle that this run replaces."""
    try:
        return parse_manifest((folder / WORK_FOLDER / MANIFEST).read_bytes()).files
    except (OSError, NoManifestError):
        return ()


def store_part(folder: Path, name: str, part: BundlePart) -> None:
    """Note the additions of a host, for the end of the run. Raises Stopped."""
    data = json.dumps(asdict(part)).encode()
    place = f"{WORK_FOLDER}/{PARTS_FOLDER}/{hashlib.sha256(name.encode()).hexdigest()}.json"
    note = BundleFile(place, hashlib.sha256(data).hexdigest(), len(data), "", "metadata")
    store_file(folder, note, [data])


def stored_parts(folder: Path) -> Iterator[BundlePart]:
    """The additions of all hosts. Raises OSError, ValueError."""
    for path in sorted((folder / WORK_FOLDER / PARTS_FOLDER).glob("*.json")):
        try:
            yield part_of(json.loads(path.read_bytes()))
        except (LookupError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path.name} is damaged") from error
