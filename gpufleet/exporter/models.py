"""Types of exporter.yaml, and the exporter in the host's record."""

from __future__ import annotations

from datetime import date
from typing import ClassVar

from pydantic import Field

from gpufleet.core.entries import BranchRange, Entry, Sourced
from gpufleet.driver.catalog import DriverCatalog
from gpufleet.facts.record import RoleEntry
from gpufleet.toolkit.models import Advisory


class ExporterVersion(Sourced):
    """A version of dcgm-exporter and its version of DCGM."""

    version: str
    dcgm: str
    warning: str = ""  # known problem of this version, as the end of a sentence


class ExporterImage(Sourced):
    """The container image: `name`:`tag`, with {dcgm} and {version} in the tag."""

    name: str
    tag: str


class ExporterPackages(Sourced):
    """Package names; `family`: a regular expression (full match) of all of them."""

    exporter: tuple[str, ...]
    dcgm: tuple[str, ...]  # at DCGM's version; more in Exporter.cuda
    family: str
    conflicts: tuple[str, ...]


class CudaPackages(Sourced, BranchRange):
    """DCGM's packages for drivers of a range of branches. `generations`: only for such GPUs."""

    names: tuple[str, ...]
    generations: tuple[str, ...] = ()


class ExporterServices(Sourced):
    """Contents of the packages: units, program, list of counters, DCGM's port."""

    engine: str
    engine_address: str
    exporter: str
    program: str
    counters: str
    folder: str


class Collector(Sourced):
    """A program that collects GPU metrics, by its name in the kernel."""

    command: str
    title: str


class Exporter(Entry):
    """exporter.yaml"""

    as_of: date
    newest: str
    versions: tuple[ExporterVersion, ...]
    security: tuple[Advisory, ...]
    image: ExporterImage
    packages: ExporterPackages
    cuda: tuple[CudaPackages, ...]
    services: ExporterServices
    collectors: tuple[Collector, ...]

    def version(self, number: str) -> ExporterVersion | None:
        return next((v for v in self.versions if v.version == number), None)


class ExporterCatalog(DriverCatalog):
    """The catalog for exporter decisions. Its packages depend on driver and GPUs."""

    exporter: Exporter


class ExporterEntry(RoleEntry):
    """The exporter that gpufleet started."""

    role: ClassVar[str] = "exporter"

    mode: str = ""  # systemd or docker
    dcgm: str | None = None  # version
    image: str | None = None
    listen: str = ""  # host:port
    metrics: str = ""  # URL on the host itself
    units: list[str] = Field(default_factory=list)
    configuration: str | None = None  # digest of its files; None if it never ran
    driver: str | None = None  # version at its start

    @property
    def versions(self) -> set[str | None]:
        """The exporter's version and DCGM's."""
        return {self.version, self.dcgm}
