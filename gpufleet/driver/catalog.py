"""Types of branches.yaml, gpus.yaml and packages.yaml, and the catalog for driver decisions.

Branches are whole numbers here (580). Versions are strings of numbers and dots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from pydantic import Field, model_validator

from gpufleet.core.entries import (
    BranchRange,
    Build,
    Entry,
    Modules,
    Profile,
    Role,
    Source,
    Sourced,
    Style,
)
from gpufleet.core.versions import branch_of
from gpufleet.packages.catalog import PackageCatalog

DriverVersion = Annotated[str, Field(pattern=r"^(\d{1,4}(\.\d{1,4}){1,3})?$")]
BOTH: tuple[Modules, ...] = ("open", "proprietary")


class Branch(Sourced):
    """A driver branch."""

    branch: int
    kind: Literal["lts", "production", "new-feature", "unknown"]
    end_of_life: date | None = None
    ended: bool = False  # end of life, date unknown
    newest: DriverVersion
    versions: tuple[DriverVersion, ...] = ()  # other known versions
    floor: DriverVersion = ""  # lowest version without a known vulnerability
    insecure: bool = False  # vulnerable, and no fixed version of the branch is known
    modules: tuple[Modules, ...] = ("open", "proprietary")
    warning: str = ""

    @model_validator(mode="after")
    def _require_own_versions(self) -> Branch:
        for version in filter(None, (self.newest, self.floor, *self.versions)):
            if branch_of(version) != self.branch:
                raise ValueError(f"has the version {version}, which is of another branch")
        return self


class OpenModules(Sourced):
    """Rules for open kernel modules of every branch."""

    default_from: int
    minimum_kernel: str


class Bulletin(Sourced):
    """The newest security bulletin, the source of the floors below."""

    title: str


class Branches(Entry):
    """branches.yaml"""

    as_of: date
    security: Bulletin
    open_modules: OpenModules
    branches: tuple[Branch, ...]


class Generation(BranchRange, Sourced):
    """A GPU generation, and the branches and modules that support it."""

    name: str
    modules: tuple[Modules, ...]
    ranges: tuple[tuple[int, int], ...]  # PCI device ids, inclusive


class Gpu(Entry):
    """A GPU by PCI device id. One id can have several names."""

    id: int
    names: tuple[str, ...]
    first: int | None = None  # first branch that supports it, if its generation's is older
    modules: tuple[Modules, ...] = ()  # if the board supports fewer than its generation
    fabric_off_host: bool = False  # its NVSwitches are not managed from the host
    nvlink5: bool = False  # its NVSwitches are not PCI devices; fabric manager needs nvlsm too


class GpuCatalog(Sourced):
    """gpus.yaml"""

    as_of: date
    generations: tuple[Generation, ...]
    gpus: tuple[Gpu, ...]


class NameGroup(BranchRange):
    """Package names for a range of branches, a module flavour and some profiles."""

    names: tuple[str, ...]
    role: Role = "userland"
    modules: Modules | None = None
    profiles: tuple[Profile, ...] = ("compute", "full")


class Pinning(BranchRange):
    """Names of NVIDIA's own pinning packages."""

    branch: str
    version: str


class PackageSet(BranchRange, Sourced):
    """The package names of one packaging: source, build and range of branches."""

    id: str
    source_kind: Source
    build: Build
    style: Style
    groups: tuple[NameGroup, ...]
    depends: tuple[NameGroup, ...] = ()
    meta: tuple[NameGroup, ...] = ()
    fabric_manager: tuple[NameGroup, ...] = ()
    pinning: Pinning | None = None
    module: str = "nvidia"
    revision: str = ""  # regular expression of the text after the version; "": not known


class PackagePatterns(Sourced):
    """Regular expressions (full match) of the driver packages of all branches."""

    style: Style
    patterns: tuple[str, ...]
    pinning: tuple[str, ...] = ()
    others: tuple[str, ...] = ()  # driver packages of sources that gpufleet does not replace


class Packages(Entry):
    """packages.yaml"""

    sets: tuple[PackageSet, ...]
    families: tuple[PackagePatterns, ...]


class DriverCatalog(PackageCatalog):
    """The catalog of drivers and GPUs, with the lookups that resolvers need."""

    branches: Branches
    gpus: GpuCatalog
    packages: Packages

    def branch(self, number: int) -> Branch | None:
        return next((b for b in self.branches.branches if b.branch == number), None)

    def generation(self, device: int) -> Generation | None:
        """The generation of a PCI device id, or None if no range contains it."""
        for generation in self.gpus.generations:
            if any(low <= device <= high for low, high in generation.ranges):
                return generation
        return None

    def gpu(self, device: int) -> Gpu | None:
        return next((g for g in self.gpus.gpus if g.id == device), None)

    def family(self, style: Style) -> PackagePatterns:
        return next(f for f in self.packages.families if f.style == style)


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU model. `generation` is None for an id that is not in the catalog."""

    id: int
    known: Gpu | None
    generation: Generation | None

    @property
    def name(self) -> str:
        """The name, such as Tesla T4. If its id has several names, the first."""
        return self.known.names[0] if self.known else f"GPU 10de:{self.id:04x}"

    @property
    def title(self) -> str:
        """The display name: "Tesla T4 (Turing)"."""
        return f"{self.name} ({self.generation.name})" if self.generation else self.name

    @property
    def first(self) -> int:
        own = self.known.first if self.known else None
        return own or (self.generation.first if self.generation else None) or 0

    @property
    def last(self) -> int:
        return (self.generation.last if self.generation else None) or 9999

    @property
    def modules(self) -> tuple[Modules, ...]:
        if self.generation is None:
            return BOTH
        return (self.known.modules if self.known else ()) or self.generation.modules

    def takes_branch(self, branch: int) -> bool:
        return self.first <= branch <= self.last

    @property
    def limit(self) -> str:
        """Why a branch may not support it, as a sentence."""
        if self.last < 9999:
            return f"The last branch for it is {self.last}."
        return f"The first branch for it is {self.first}."


def devices_of(catalog: DriverCatalog, ids: Sequence[int]) -> tuple[Device, ...]:
    """The distinct GPU models among PCI device ids, in order of id."""
    return tuple(
        Device(device, catalog.gpu(device), catalog.generation(device))
        for device in sorted(set(ids))
    )


def common_modules(devices: Sequence[Device]) -> tuple[Modules, ...]:
    """The flavours of kernel modules that every GPU can use."""
    return tuple(m for m in BOTH if all(m in device.modules for device in devices))


def name_devices(devices: Sequence[Device]) -> str:
    """The GPUs as a list for a sentence."""
    return ", ".join(device.title for device in devices)
