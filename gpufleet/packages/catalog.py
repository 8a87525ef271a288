"""Types of the catalog: facts about the outside world, read from the YAML files of the rooms.

Every entry says where it comes from (`source`) and, where it was really tried, when and how
(`verified`). Branches are whole numbers here (580); versions are strings of numbers and dots.
"""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from gpufleet.core.entries import BranchRange, Build, Entry, Modules, Sourced, Style
from gpufleet.driver.package_names import Family, Packages
from gpufleet.exporter.models import Exporter
from gpufleet.facts.model import PackageManager
from gpufleet.packages.models import CudaRepository
from gpufleet.toolkit.models import Runtime, Runtimes, Toolkit


class ArchiveBranch(Entry):
    """A driver branch in a distribution's own archive."""

    branch: int
    newest: str = ""
    modules: tuple[Modules, ...] = ("open", "proprietary")
    build: tuple[Build, ...] = ("dkms",)
    note: str = ""


class Archive(Sourced):
    """What a distribution's own archive has, and which of its components are needed."""

    components: tuple[str, ...] = ()
    third_parties: tuple[str, ...] = ()  # regular expressions of addresses laid out like it
    branches: tuple[ArchiveBranch, ...] = ()


class ExtraRepository(Sourced):
    """A repository that the driver's dependencies come from (base, EPEL), by name and address.

    With `path` it is the archive of repositories that are gone; below a mirror of the archives it
    has that path.
    """

    name: str
    url: str
    path: str = ""
    key: str = ""  # file on the host
    key_url: str = ""  # where the key is fetched from, where the host does not have it
    key_path: str = ""  # the same below a mirror of the archives
    fingerprints: tuple[str, ...] = ()  # of that key; 40 digits, upper case
    replaces: tuple[str, ...] = ()  # sections of .repo files that it stands in for
    gone: tuple[str, ...] = ()  # regular expressions of the addresses that are gone
    provides: tuple[str, ...] = ()  # packages of the driver's prerequisites that it alone has
    needed_for: str = ""


class ToolkitLimits(Sourced):
    """Which versions of the container toolkit a distribution can have."""

    tested: bool = False
    refused: tuple[str, ...] = ()  # version prefixes that cannot be installed
    reason: str = ""


class Distribution(Sourced):
    """A distribution, by NVIDIA's code for it."""

    code: str
    title: str
    also: tuple[str, ...] = ()  # distributions that are served by the same repository
    style: Style
    manager: PackageManager
    end_of_life: date | None = None
    supported: bool = True  # in the newest installation guide of NVIDIA
    architectures: dict[str, str]  # `uname -m` -> directory of the repository
    key: str
    branches: BranchRange
    ceiling: str = ""  # newest driver version that was built for it, where building has ended
    modules: tuple[Modules, ...] = ("open", "proprietary")
    modules_reason: str = ""
    streams: dict[str, str] = Field(default_factory=dict)  # "build/modules" -> module stream
    version_lock: str = ""
    headers: tuple[str, ...]
    headers_meta: tuple[str, ...] = ()
    build: tuple[str, ...]
    archive: Archive | None = None
    extra_repositories: tuple[ExtraRepository, ...] = ()
    toolkit: ToolkitLimits


class Branch(Sourced):
    """A driver branch."""

    branch: int
    kind: Literal["lts", "production", "new-feature", "unknown"]
    end_of_life: date | None = None
    ended: bool = False  # over, and the day is not established
    newest: str
    versions: tuple[str, ...] = ()  # others that are known
    floor: str = ""  # lowest version without a known vulnerability
    insecure: bool = False  # vulnerable, and no fixed version of the branch is known
    modules: tuple[Modules, ...] = ("open", "proprietary")
    warning: str = ""


class OpenModules(Sourced):
    """Rules about open kernel modules that hold for every branch."""

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
    """A GPU generation, and the branches and modules that serve it."""

    name: str
    modules: tuple[Modules, ...]
    ranges: tuple[tuple[int, int], ...]  # PCI device ids, both ends included


class Gpu(Entry):
    """A GPU by PCI device id; one id can have several names."""

    id: int
    names: tuple[str, ...]
    first: int | None = None  # first branch that knows it, where later than its generation's
    modules: tuple[Modules, ...] = ()  # where the board is pickier than its generation
    fabric_off_host: bool = False  # its NVSwitches are not managed from the host
    nvlink5: bool = False  # its NVSwitches are not PCI devices; fabric manager needs nvlsm too


class NvSwitch(Entry):
    """An NVSwitch by PCI device id."""

    id: int
    name: str


class Gpus(Sourced):
    """gpus.yaml"""

    as_of: date
    generations: tuple[Generation, ...]
    gpus: tuple[Gpu, ...]
    nvswitches: tuple[NvSwitch, ...]


class Catalog(Entry):
    """All facts, with the look-ups that resolvers and the command line need."""

    distributions: tuple[Distribution, ...]
    branches: Branches
    gpus: Gpus
    packages: Packages
    cuda: CudaRepository
    toolkit: Toolkit
    runtimes: Runtimes
    exporter: Exporter

    def distribution(self, code: str) -> Distribution | None:
        return next((d for d in self.distributions if d.code == code), None)

    def branch(self, number: int) -> Branch | None:
        return next((b for b in self.branches.branches if b.branch == number), None)

    def generation(self, device: int) -> Generation | None:
        """The generation of a PCI device id, or None where no range holds it."""
        for generation in self.gpus.generations:
            if any(low <= device <= high for low, high in generation.ranges):
                return generation
        return None

    def gpu(self, device: int) -> Gpu | None:
        return next((g for g in self.gpus.gpus if g.id == device), None)

    def family(self, style: Style) -> Family:
        return next(f for f in self.packages.families if f.style == style)

    def runtime(self, name: str) -> Runtime | None:
        return next((r for r in self.runtimes.runtimes if r.name == name), None)
