"""The plan of the exporter of one host, and what it is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpufleet.exporter.files import Mode, digest
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.choice import ExporterChoice
from gpufleet.packages.repository import RepositoryPlan

_LOCAL = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the roles before it leave for the exporter."""

    branch: int | None  # of the driver that is loaded then; None: there is none
    driver: str | None  # its version, where that is known before the run
    repository: RepositoryPlan | None  # NVIDIA's, where the host has it by then
    docker: str  # why docker cannot run it; "" where it can


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages that are to be at one version."""

    names: tuple[str, ...]
    prefix: str  # version, or what it begins with
    exact: bool
    installed: tuple[str, ...]  # of the same sort, there now
    before: str | None  # version of those that are there
    needed: bool


@dataclass(frozen=True, slots=True)
class ExporterPlan:
    """The steps of the exporter role for one host; a step that is empty has nothing to do."""

    choice: ExporterChoice
    mode: Mode
    address: str  # host:port of /metrics
    packages: tuple[Packages, ...]  # DCGM's, then the exporter's; none for a container
    repository: RepositoryPlan | None
    prerequisites: tuple[str, ...]  # what locks versions, where it is missing
    hold: tuple[str, ...]
    wanted_files: tuple[FileWrite, ...]
    files: tuple[FileWrite, ...]  # those that differ on the host
    units: tuple[str, ...]  # in the order of their start
    retire: tuple[str, ...]  # units of the other mode, which run because of gpufleet
    restart: bool  # what runs is not what is wanted, or does not run at all
    reasons: tuple[str, ...]

    @property
    def reachable(self) -> str:
        """host:port at which the host itself reaches /metrics."""
        host, _, port = self.address.rpartition(":")
        return f"{_LOCAL.get(host, host)}:{port}"

    @property
    def configuration(self) -> str:
        return digest(self.wanted_files)

    @property
    def before(self) -> str | None:
        """Version of the packages that are there now."""
        return self.packages[-1].before if self.packages else None

    @property
    def changes_packages(self) -> bool:
        return any(family.needed for family in self.packages)

    @property
    def converged(self) -> bool:
        """Whether there is nothing to do, as long as the driver stays."""
        return not (self.changes_packages or self.hold or self.files or self.retire or self.restart)

    def describe(self) -> dict[str, Any]:
        """The plan as data for preflight's JSON."""
        return {
            "mode": self.mode,
            "version": self.choice.version,
            "dcgm": self.choice.dcgm,
            "image": self.choice.image if self.mode == "docker" else None,
            "packages": [name for family in self.packages for name in family.names],
            "address": self.address,
            "files": [file.path for file in self.files],
            "units": list(self.units),
            "restart": self.restart,
            "reasons": list(self.reasons),
        }
