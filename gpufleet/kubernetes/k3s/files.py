"""The files of a k3s release: the program and archives of images, and where they go. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from urllib.parse import quote

BINARY = "/usr/local/bin/k3s"
IMAGES = "/var/lib/rancher/k3s/agent/images"  # k3s imports what is in there when it starts
ARCHIVES = (".tar", ".tar.gz", ".tar.zst")
CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """One file. It is sent from this machine (`path`), or the host fetches it (`url`)."""

    name: str
    sha256: str
    target: str
    mode: str  # as of chmod
    path: str = ""
    url: str = ""


def sha256_of(path: str) -> str:
    """Of a file on this machine, which is read once while it stays the same. Raises ValueError."""
    try:
        status = Path(path).stat()
        return _sha256(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error


@lru_cache(maxsize=256)
def _sha256(path: str, size: int, changed: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def release_files(
    paths: list[str],
    url: str | None,
    digests: Mapping[str, str],
    version: str,
    binary: str,
    others: Collection[str] = (),
) -> Iterator[ReleaseFile]:
    """The files by their name on this machine, else by name and digest in a mirror.

    `binary`: the program's name for the host's architecture; `others`: how names of archives for
    other architectures end. Files that are neither it nor archives are not a host's.
    """
    if paths:
        for path in paths:
            name = PurePosixPath(path).name
            if target := _target(name, binary, others):
                yield ReleaseFile(name, sha256_of(path), target, _mode(target), path=path)
        return
    for name, digest in sorted(digests.items()):
        target = _target(name, binary, others)
        if url and target:
            place = f"{url}/{quote(version)}/{quote(name)}"
            yield ReleaseFile(name, digest, target, _mode(target), url=place)


def _target(name: str, binary: str, others: Collection[str]) -> str:
    """ "" for a file that the host does not get."""
    if name == binary:
        return BINARY
    ending = next((each for each in ARCHIVES if name.endswith(each)), "")
    foreign = name.removesuffix(ending).rpartition("-")[2] in others
    return f"{IMAGES}/{name}" if ending and not foreign and "/" not in name else ""


def _mode(target: str) -> str:
    return "755" if target == BINARY else "644"
