"""Archives of container images on this machine: their names and contents.

Sources: https://github.com/opencontainers/image-spec/blob/main/image-layout.md and, for what
containerd's import makes of both formats,
https://github.com/containerd/containerd/tree/main/core/images/archive
"""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from glob import glob
from pathlib import Path
from typing import Any

from gpufleet.core.paths import expand_user_path

OCI, DOCKER = "index.json", "manifest.json"
MAX_INDEX_BYTES = 4 * 2**20  # bytes of such a file
IMAGE_NAME_KEYS = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
UNPACKED = 2  # containerd keeps an image's layers, and unpacks them
PACKED = 3  # how much larger a compressed archive is then, at a guess


@dataclass(frozen=True, slots=True)
class ImageArchive:
    """One archive. `images`: names, each with the digest that containerd lists: of the manifest or
    of the configuration."""

    path: str
    size: int  # bytes
    digest: str  # of the index or manifest at its top
    images: tuple[tuple[str, str], ...]
    compressed: bool = False

    @property
    def room(self) -> int:
        """Bytes that its images need on a host, without the archive itself."""
        return self.size * UNPACKED * (PACKED if self.compressed else 1)


def expand_patterns(patterns: Sequence[str]) -> list[str]:
    """The files that paths and patterns name, each once. Raises ValueError for one without any."""
    found: list[str] = []
    for pattern in patterns:
        path = str(expand_user_path(pattern).absolute())
        names = [path] if Path(path).is_file() else sorted(glob(path))
        files = [name for name in names if Path(name).is_file()]
        if not files:
            raise ValueError(f"names {pattern}, and there is no such file on this machine")
        found += [name for name in files if name not in found]
    return found


def read_archive(path: str) -> ImageArchive:
    """An archive, which is read once while it stays the same. Raises ValueError, which says what is
    wrong with it."""
    try:
        status = Path(path).stat()
        return _read(path, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error


@lru_cache(maxsize=256)
def _read(path: str, size: int, changed: int) -> ImageArchive:
    with open(path, "rb") as file:
        head = file.read(4)
    if head == ZSTD:
        raise ValueError(f"{path} is compressed with zstd, which is not read here: unpack it")
    compressed = head.startswith(GZIP)
    try:
        with tarfile.open(path, "r:gz" if compressed else "r:") as tar:
            files = dict(_descriptions(tar))
        images = tuple(sorted(set(_images(files))))
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no tar archive, or not a whole one: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no archive of images of OCI's or docker's format") from error
    if not images:
        raise ValueError(f"{path} gives its images no names: no pod could use them")
    named = b"".join(data for _, data in sorted(files.items()))
    digest = hashlib.sha256(named + str(size).encode()).hexdigest()
    return ImageArchive(path, size, digest, images, compressed)


def _descriptions(tar: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """The files that say which images an archive has."""
    for member in tar:
        name = member.name.removeprefix("./")
        if name in (OCI, DOCKER) and member.isfile():
            if member.size > MAX_INDEX_BYTES:
                raise ValueError(f"{name} is too large")
            content = tar.extractfile(member)
            assert content
            yield name, content.read()


def _images(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Name and digest of each image: containerd prefers the description of OCI."""
    if OCI in files:
        for entry in json.loads(files[OCI])["manifests"]:
            if name := _name(entry.get("annotations") or {}):
                yield name, _digest(entry["digest"])
        return
    for entry in json.loads(files[DOCKER]):
        config = entry["Config"].rpartition("/")[2].removesuffix(".json")
        for name in entry.get("RepoTags") or ():
            yield normalize_image(name), _digest(f"sha256:{config}")


def _name(annotations: Mapping[str, Any]) -> str:
    """An image's; "" also for one with a tag alone, which the import names by the date."""
    own, tag = (str(annotations.get(key) or "") for key in IMAGE_NAME_KEYS)
    return own or (tag if re.search("[/:@]", tag) else "")


def normalize_image(name: str) -> str:
    """The whole name of an image: busybox:1 is docker.io/library/busybox:1."""
    first, slash, _ = name.partition("/")
    hosted = slash and ("." in first or ":" in first or first == "localhost")
    whole = name if hosted else f"docker.io/{name}" if slash else f"docker.io/library/{name}"
    return whole if ":" in whole.rpartition("/")[2] or "@" in whole else f"{whole}:latest"


def _digest(text: str) -> str:
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", text):
        raise ValueError(f"{text} is no digest")
    return text
