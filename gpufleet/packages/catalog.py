"""The catalog for package decisions: distributions, and NVIDIA's repositories."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gpufleet.core.distributions import Distribution, Systemd
from gpufleet.core.entries import Entry, PackageManager, Sourced

Fingerprint = Annotated[str, Field(pattern="^[0-9A-F]{40}$")]


class Key(Sourced):
    """A repository's signing key. `fingerprints` is empty if they are unknown."""

    file: str
    fingerprints: tuple[Fingerprint, ...] = ()
    sha256: str = ""


class RepositoryLayout(Sourced):
    """The package manager configuration of a repository; `{…}` are filled in."""

    managers: tuple[PackageManager, ...]
    name: str
    file: str
    keyring: str
    signed_packages: bool
    signed_metadata: bool


class CudaRepository(Sourced):
    """NVIDIA's network repository of drivers."""

    base: str
    layouts: tuple[RepositoryLayout, ...]
    keys: tuple[Key, ...]
    revoked: tuple[Key, ...] = ()

    def key(self, file: str) -> Key:
        """The key for that file. Raises KeyError if repositories.yaml has no such key."""
        return {key.file: key for key in self.keys}[file]


class PackageCatalog(Entry):
    """Facts about distributions and repositories."""

    distributions: tuple[Distribution, ...]
    cuda: CudaRepository
    offline: Systemd

    def distribution(self, code: str) -> Distribution | None:
        return next((d for d in self.distributions if d.code == code), None)
