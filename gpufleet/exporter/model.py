"""The exporter plan of one host."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.exporter.files import Mode, digest
from gpufleet.exporter.resolve import ExporterChoice
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.repository import RepositoryPlan
from gpufleet.packages.transaction import Family

_LOCAL = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}


@dataclass(frozen=True, slots=True)
class ExporterPlan:
    """The steps of the exporter role for one host; an empty step does nothing."""

    choice: ExporterChoice
    mode: Mode
    address: str  # host:port of /metrics
    packages: tuple[Family, ...]  # DCGM's, then the exporter's; none for a container
    before: str | None  # version of the installed exporter's packages
    repository: RepositoryPlan | None
    prerequisites: tuple[str, ...]  # version lock, if missing
    hold: tuple[str, ...]
    wanted_files: tuple[FileWrite, ...]
    files: tuple[FileWrite, ...]  # those that differ on the host
    units: tuple[str, ...]  # in start order
    retire: tuple[str, ...]  # units of the other mode that gpufleet started
    restart: bool  # the exporter does not run, or not as planned
    waits: bool  # its unit file is new and systemd does not read it while containers have GPUs
    reasons: tuple[str, ...]

    @property
    def reachable(self) -> str:
        """host:port of /metrics on the host itself."""
        host, _, port = self.address.rpartition(":")
        return f"{_LOCAL.get(host, host)}:{port}"

    @property
    def configuration(self) -> str:
        return digest(self.wanted_files)

    @property
    def changes_packages(self) -> bool:
        return any(family.needed for family in self.packages)

    @property
    def converged(self) -> bool:
        """Whether there is nothing to do, unless the driver changes."""
        return not (self.changes_packages or self.hold or self.files or self.retire or self.restart)
