"""Official binaries: fetched by URL, and verified by the checksum in official.yaml."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tarfile
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPException
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, StringConstraints

from gpufleet.core.responses import run_within

CHUNK = 1 << 16
TIMEOUT = 10.0  # seconds without a byte, before building from source
SITE = "GPUFLEET_BINARIES"  # URL of a mirror with the paths of the official sites
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str  # URL of the digests


class Release(_Data):
    """Digests of one Kubernetes release: architecture -> program -> sha256."""

    amd64: Mapping[str, Digest]
    arm64: Mapping[str, Digest]


class Kubernetes(_Data):
    url: str
    releases: Mapping[str, Release]


class Program(_Data):
    """`sha256`: architecture -> digest of the file at the URL; `member`: path in an archive."""

    version: str
    url: str
    member: str = ""
    sha256: Mapping[str, Digest]


class Official(BaseModel):
    """official.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kubernetes: Kubernetes
    programs: Mapping[str, Program]


@dataclass(frozen=True, slots=True)
class Binary:
    """A file to fetch, an archive if `member` is set. `sha256`: of the file at `url`."""

    url: str
    sha256: str
    member: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a download: the lowest `rate` in bytes per second, `after` that many seconds; the
    `most` bytes; the total `seconds`, after which building is faster."""

    rate: float = 256 * 1024
    after: float = 20.0
    most: int = 1 << 30
    seconds: float = 900.0


class NotFetched(Exception):
    """The reason why an official binary is not available."""


class WrongChecksum(NotFetched):
    """Checksum mismatch: damaged in transit, replaced, or the checksum is wrong."""


@lru_cache(maxsize=1)
def official() -> Official:
    """official.yaml, validated."""
    text = resources.files("gpufleet_sandbox.cluster").joinpath("official.yaml").read_text()
    return Official.model_validate(yaml.safe_load(text))


def server(name: str, version: str) -> Binary | None:
    """A program of a Kubernetes release (1.36.3), or None without a known digest."""
    data, arch = official().kubernetes, _architecture()
    release = data.releases.get(version)
    digest = getattr(release, arch, {}).get(name)
    return (
        Binary(data.url.format(version=version, arch=arch, name=name), digest) if digest else None
    )


def program(name: str, version: str) -> Binary | None:
    """A program of versions.yaml at its version (v3.7.2), or None without a known digest."""
    data, arch = official().programs.get(name), _architecture()
    if data is None or data.version != version or arch not in data.sha256:
        return None
    values: dict[str, Any] = {"version": version, "arch": arch}
    return Binary(data.url.format(**values), data.sha256[arch], data.member.format(**values))


def fetch(wanted: Binary, target: Path, limits: Limits = Limits()) -> None:
    """Fetch a program to `target` and verify its checksum. NotFetched if that fails."""
    url = wanted.url
    if os.environ.get(SITE):
        url = os.environ[SITE].rstrip("/") + "/" + url.split("/", 3)[3]
    home = target.parent.parent
    home.mkdir(parents=True, exist_ok=True)
    mark = f".fetching-{target.parent.name}-{target.name}-"
    for left in home.glob(f"{mark}*"):  # from a killed run; the caller holds the lock
        shutil.rmtree(left)
    with TemporaryDirectory(dir=home, prefix=mark) as folder:
        partial = Path(folder, "partial")
        try:
            found = run_within(limits.seconds, lambda end: _download(url, partial, limits, end))
        except TimeoutError:
            reason = f"timed out after {limits.seconds:.0f} seconds"
            raise NotFetched(f"{_shown(url)} {reason}") from None
        if found != wanted.sha256:
            reason = f"has the sha256 {found}, expected {wanted.sha256}"
            raise WrongChecksum(f"{_shown(url)} {reason}")
        if wanted.member:
            partial = _unpacked(partial, wanted.member)
        partial.chmod(0o755)
        target.parent.mkdir(exist_ok=True)
        partial.replace(target)


def _architecture() -> str:
    """amd64 or arm64, as releases name it; of other machines the name of the platform."""
    return MACHINES.get(platform.machine(), platform.machine())


def _download(url: str, target: Path, limits: Limits, end: Event) -> str:
    """Write the content of a URL to `target`. Returns its sha256."""
    digest, size, start = hashlib.sha256(), 0, time.monotonic()
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response, open(target, "wb") as file:
            while not end.is_set() and (chunk := response.read1(CHUNK)):
                digest.update(chunk)
                size += file.write(chunk)
                seconds = time.monotonic() - start
                if seconds > limits.after and size / seconds < limits.rate:
                    rate = f"{size / seconds / 1024:.0f} KiB/s"
                    raise NotFetched(f"{_shown(url)} is too slow: {rate}")
                if size > limits.most:
                    raise NotFetched(f"{_shown(url)} has more than {limits.most} bytes")
    except (OSError, HTTPException, ValueError) as error:
        raise NotFetched(f"{_shown(url)} cannot be read: {error}") from error
    return digest.hexdigest()


def _shown(url: str) -> str:
    """A URL without its credentials."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if rest else "the URL"


def _unpacked(archive: Path, member: str) -> Path:
    """Extract one file of a verified archive."""
    target = archive.with_name("member")
    try:
        with tarfile.open(archive) as files, open(target, "wb") as file:
            source = files.extractfile(member)
            if source is None:
                raise NotFetched(f"{member} is not a file in the archive")
            shutil.copyfileobj(source, file)
    except (tarfile.TarError, KeyError, EOFError) as error:
        raise NotFetched(f"{member} is not in the archive: {error}") from error
    return target
