"""Types of the catalog: facts about the outside world, read from the YAML files beside this module.

Every entry says where it comes from (`source`) and, where it was really tried, when and how
(`verified`). Branches are whole numbers here (580); versions are strings of numbers and dots.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from gpufleet.facts.model import PackageManager

Build = Literal["dkms", "precompiled"]
Modules = Literal["open", "proprietary"]
Profile = Literal["compute", "full"]
Source = Literal["nvidia", "distro"]
Style = Literal["deb", "rpm"]
Role = Literal["dkms", "kernel", "modules", "userland", "desktop", "own"]


class Entry(BaseModel):
    """Base of every catalog type: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Sourced(Entry):
    """An entry that says where its facts come from."""

    source: str
    verified: str = ""
    note: str = ""


class BranchRange(Entry):
    """A range of branches, both ends included; an end that is left out is open."""

    first: int | None = None
    last: int | None = None

    def covers(self, branch: int) -> bool:
        return (self.first or 0) <= branch <= (self.last or 9999)


class NameGroup(BranchRange):
    """Package names that count for a range of branches, a module flavour and some profiles."""

    names: tuple[str, ...]
    role: Role = "userland"
    modules: Modules | None = None
    profiles: tuple[Profile, ...] = ("compute", "full")

    def counts(self, branch: int, modules: Modules, profile: Profile) -> bool:
        return (
            self.covers(branch) and self.modules in (None, modules) and profile in self.profiles
        )


class Pinning(BranchRange):
    """Names of NVIDIA's own pinning packages."""

    branch: str
    version: str


class Revision(Entry):
    """A package version seen in a repository: an example, never a rule."""

    names: str
    example: str


class PackageSet(BranchRange, Sourced):
    """The package names of one packaging: distributions, source, build and range of branches."""

    id: str
    source_kind: Source
    build: Build
    style: Style
    distributions: tuple[str, ...]
    groups: tuple[NameGroup, ...]
    depends: tuple[NameGroup, ...] = ()
    meta: tuple[NameGroup, ...] = ()
    fabric_manager: tuple[NameGroup, ...] = ()
    pinning: Pinning | None = None
    revisions: tuple[Revision, ...] = ()
    module: str = "nvidia"

    def names(
        self, roles: Iterable[Role], branch: int, modules: Modules, profile: Profile
    ) -> tuple[str, ...]:
        """Name templates of the groups with one of `roles` that count for this choice, sorted."""
        wanted = set(roles)
        return tuple(
            sorted(
                name
                for group in self.groups
                if group.role in wanted and group.counts(branch, modules, profile)
                for name in group.names
            )
        )

    def offers(self, branch: int, modules: Modules) -> bool:
        """True where this packaging has kernel modules of that flavour for the branch."""
        return self.covers(branch) and any(
            group.modules == modules and group.covers(branch) for group in self.groups
        )


class Family(Sourced):
    """Regular expressions (whole name) of every driver package of any branch."""

    style: Style
    patterns: tuple[str, ...]
    pinning: tuple[str, ...] = ()


class Packages(Entry):
    """packages.yaml"""

    sets: tuple[PackageSet, ...]
    families: tuple[Family, ...]


class Key(Sourced):
    """A signing key of a repository."""

    file: str
    fingerprints: tuple[str, ...] = ()
    sha256: str = ""


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
    branches: tuple[ArchiveBranch, ...] = ()


class ExtraRepository(Sourced):
    """A repository that the driver's dependencies come from (base, EPEL), by name and address."""

    name: str
    url: str
    key: str = ""
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
    style: Style
    manager: PackageManager
    end_of_life: date | None = None
    supported: bool = True  # in the newest installation guide of NVIDIA
    architectures: dict[str, str]  # `uname -m` -> directory of the repository
    key: str
    branches: BranchRange
    branch_list: tuple[int, ...] = ()  # where not every branch of the range exists
    ceiling: str = ""  # newest driver version that was built for it, where building has ended
    streams: dict[str, str] = Field(default_factory=dict)  # "build/modules" -> stream template
    version_lock: str = ""
    headers: tuple[str, ...]
    headers_meta: tuple[str, ...] = ()
    build: tuple[str, ...]
    archive: Archive | None = None
    extra_repositories: tuple[ExtraRepository, ...] = ()
    toolkit: ToolkitLimits


class RepositoryLayout(Sourced):
    """How a package manager is told of a repository; `{…}` are filled in."""

    style: Style
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


class Distributions(Entry):
    """distributions.yaml"""

    distributions: tuple[Distribution, ...]


class Branch(Sourced):
    """A driver branch."""

    branch: int
    kind: Literal["lts", "production", "new-feature", "unknown"]
    end_of_life: date | None = None
    newest: str
    versions: tuple[str, ...] = ()  # others that are known
    floor: str = ""  # lowest version without a known vulnerability
    insecure: bool = False  # vulnerable, and no fixed version of the branch exists
    modules: tuple[Modules, ...] = ("open", "proprietary")
    warning: str = ""


class Branches(Entry):
    """branches.yaml"""

    as_of: date
    security: Sourced
    branches: tuple[Branch, ...]


class Generation(BranchRange, Sourced):
    """A GPU generation, and the branches and modules that serve it."""

    name: str
    modules: tuple[Modules, ...]
    ranges: tuple[tuple[int, int], ...] = ()  # PCI device ids, both ends included


class Gpu(Entry):
    """A GPU by PCI device id; one id can have several names."""

    id: int
    names: tuple[str, ...]
    generation: str = ""  # where the generation's ranges do not tell
    first: int | None = None  # first branch that knows the id
    modules: tuple[Modules, ...] = ()  # where the board is pickier than its generation
    fabric_off_host: bool = False


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


class ToolkitVersion(Sourced):
    """A version of the container toolkit."""

    version: str


class Advisory(Sourced):
    """A vulnerability of the toolkit: versions below `fixed` have it."""

    cve: str
    fixed: str


class Toolkit(Entry):
    """toolkit.yaml"""

    as_of: date
    packages: tuple[str, ...]
    hook_free_packages: tuple[str, ...]
    architectures: tuple[str, ...]
    versions: tuple[ToolkitVersion, ...]
    oldest: str
    security: tuple[Advisory, ...]
    base: str
    key: Key
    layouts: tuple[RepositoryLayout, ...]
    paths: dict[Style, str]  # part of the address after the base, per style
    behaviour: tuple[ToolkitBehaviour, ...]
    cdi_refresh: CdiRefresh


class ToolkitBehaviour(Sourced):
    """Something that the toolkit does only in a range of versions (`until` is not included)."""

    topic: str
    since: str = ""
    until: str = ""
    effect: str


class CdiRefresh(Sourced):
    """The units that keep the CDI specification current."""

    since: str
    units: tuple[str, ...]
    environment: str
    output: str
    minimum_systemd: int
    not_handled: tuple[str, ...]
    manual_output: str


class RuntimeConfig(Sourced):
    """A configuration file of a runtime, by who starts it."""

    variant: str
    config: str
    drop_in: str = ""
    template: str = ""
    unit: str = ""
    written_by_us: bool = True


class RuntimeMinimum(Sourced):
    """The lowest version of a runtime for one feature."""

    feature: str
    version: str
    how: str = ""


class Runtime(Sourced):
    """A container runtime."""

    name: Literal["docker", "containerd", "crio", "podman"]
    configs: tuple[RuntimeConfig, ...] = ()
    minimums: tuple[RuntimeMinimum, ...] = ()


class Runtimes(Entry):
    """runtimes.yaml"""

    as_of: date
    runtimes: tuple[Runtime, ...]


class Catalog(Entry):
    """All facts, with the look-ups that resolvers and the command line need."""

    distributions: tuple[Distribution, ...]
    branches: Branches
    gpus: Gpus
    packages: Packages
    cuda: CudaRepository
    toolkit: Toolkit
    runtimes: Runtimes

    def distribution(self, code: str) -> Distribution | None:
        return next((d for d in self.distributions if d.code == code), None)

    def branch(self, number: int) -> Branch | None:
        return next((b for b in self.branches.branches if b.branch == number), None)

    def generation(self, device: int) -> Generation | None:
        """The generation of a PCI device id, or None where the catalog does not know it."""
        known = self.gpu(device)
        by_name = known.generation if known else ""
        for generation in self.gpus.generations:
            if by_name == generation.name:
                return generation
            if not by_name and any(low <= device <= high for low, high in generation.ranges):
                return generation
        return None

    def gpu(self, device: int) -> Gpu | None:
        return next((g for g in self.gpus.gpus if g.id == device), None)

    def family(self, style: Style) -> Family:
        return next(f for f in self.packages.families if f.style == style)


Toolkit.model_rebuild()
