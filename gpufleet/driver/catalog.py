"""Types of branches.yaml and gpus.yaml, and the catalog for driver decisions.

Branches are whole numbers here (580); versions are strings of numbers and dots.
"""

from __future__ import annotations

from datetime import date
from typing import Literal

from gpufleet.core.entries import BranchRange, Entry, Modules, Sourced, Style
from gpufleet.driver.package_names import PackagePatterns, Packages
from gpufleet.packages.catalog import PackageCatalog


class Branch(Sourced):
    """A driver branch."""

    branch: int
    kind: Literal["lts", "production", "new-feature", "unknown"]
    end_of_life: date | None = None
    ended: bool = False  # end of life, date unknown
    newest: str
    versions: tuple[str, ...] = ()  # other known versions
    floor: str = ""  # lowest version without a known vulnerability
    insecure: bool = False  # vulnerable, and no fixed version of the branch is known
    modules: tuple[Modules, ...] = ("open", "proprietary")
    warning: str = ""


class OpenModules(Sourced):
    """Rules about open kernel modules for every branch."""

    default_from: int
    minimum_kernel: str


class Bulletin(Sourced):
    """The newest security bulletin that the floors below come from."""

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
    """A GPU by PCI device id; one id can have several names."""

    id: int
    names: tuple[str, ...]
    first: int | None = None  # first branch that supports it, if later than its generation's
    modules: tuple[Modules, ...] = ()  # if the board supports fewer than its generation
    fabric_off_host: bool = False  # its NVSwitches are not managed from the host
    nvlink5: bool = False  # its NVSwitches are not PCI devices; fabric manager needs nvlsm too


class Gpus(Sourced):
    """gpus.yaml"""

    as_of: date
    generations: tuple[Generation, ...]
    gpus: tuple[Gpu, ...]


class DriverCatalog(PackageCatalog):
    """The catalog of drivers and GPUs, with the lookups that resolvers need."""

    branches: Branches
    gpus: Gpus
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
