"""Types of containerd.yaml, and containerd in the host's record."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from gpufleet.core.entries import Sourced, Style
from gpufleet.facts.record import RoleEntry
from gpufleet.packages.catalog import Key, PackageCatalog, RepositoryLayout


class DistributionPackage(Sourced):
    """The package of some distributions, and the oldest version that they ever had."""

    codes: tuple[str, ...]
    package: str
    version: str


class DockerPlace(Sourced):
    """The location of the packages for some distributions in Docker's repository."""

    codes: tuple[str, ...]
    folder: str
    path: str


class DockerRepository(Sourced):
    """Docker's repository and its package of containerd."""

    package: str
    version: str  # the oldest that its repositories offer first
    base: str
    keys: dict[Style, Key]
    places: tuple[DockerPlace, ...]
    layouts: tuple[RepositoryLayout, ...]


class Containerd(Sourced):
    """containerd.yaml"""

    as_of: date
    config: str
    unit: str
    distributions: tuple[DistributionPackage, ...]
    docker: DockerRepository

    @property
    def packages(self) -> tuple[str, ...]:
        """Every name of the package."""
        names = [each.package for each in self.distributions]
        return tuple(dict.fromkeys([*names, self.docker.package]))


class ContainerdCatalog(PackageCatalog):
    """The catalog for decisions about containerd."""

    containerd: Containerd


class ContainerdEntry(RoleEntry):
    """The package that gpufleet installed, in the host's record."""

    role: ClassVar[str] = "containerd"
