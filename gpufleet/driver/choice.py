"""Chooses the driver for a host conservatively, from the branches that can be installed there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from gpufleet.core.distributions import Distribution
from gpufleet.core.entries import BranchRange, Build, Modules, Source
from gpufleet.core.findings import Finding
from gpufleet.core.versions import branch_of, version_tuple
from gpufleet.driver.catalog import (
    BOTH,
    Branch,
    Device,
    DriverCatalog,
    PackageSet,
    common_modules,
    name_devices,
)
from gpufleet.driver.settings import DriverSettings
from gpufleet.packages.repository import Repository

KIND_TITLES = {
    "lts": "long-term branch",
    "production": "production branch",
    "new-feature": "new feature branch",
    "unknown": "branch",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """An installable branch, and the module flavours that have packages."""

    branch: Branch
    packages: PackageSet
    modules: tuple[Modules, ...]
    newest: str
    note: str = ""
    usable: tuple[Modules, ...] = ()  # of `modules`, those for this host; see `candidate_branches`


def package_set(
    catalog: DriverCatalog, distribution: Distribution, source: Source, build: Build, branch: int
) -> PackageSet | None:
    """The packages of one branch on a distribution, or None if the source does not have it."""
    for candidate in catalog.packages.sets:
        if (
            candidate.id in distribution.driver_packages
            and candidate.source_kind == source
            and candidate.build == build
            and candidate.covers(branch)
        ):
            return candidate
    return None


def kernel_takes_open(catalog: DriverCatalog, kernel: str) -> bool:
    """False if the running kernel is known to be too old for open modules."""
    number = version_tuple(kernel)
    return not number or number >= version_tuple(catalog.branches.open_modules.minimum_kernel)


def branches_of(distribution: Distribution) -> BranchRange:
    """Branches in NVIDIA's repository for a distribution."""
    if not distribution.ceiling:
        return distribution.branches
    return BranchRange(first=distribution.branches.first, last=branch_of(distribution.ceiling))


def branch_offer(
    catalog: DriverCatalog, distribution: Distribution, source: Source, build: Build, branch: Branch
) -> Offer | None:
    """The offer of one branch, or None if it cannot be installed."""
    packages = package_set(catalog, distribution, source, build, branch.branch)
    if packages is None:
        return None
    allowed, newest, note = distribution.modules, branch.newest, ""
    if source == "distro":
        known = distribution.archive.branches if distribution.archive else ()
        same = (each for each in known if each.branch == branch.branch and build in each.build)
        archived = next(same, None)
        if archived is None:
            return None
        allowed = tuple(m for m in archived.modules if m in allowed)
        newest, note = archived.newest or newest, archived.note
    elif not branches_of(distribution).covers(branch.branch):
        return None
    elif distribution.ceiling and branch.branch == branch_of(distribution.ceiling):
        newest = distribution.ceiling
    there = {group.modules for group in packages.groups if group.covers(branch.branch)}
    modules = tuple(m for m in BOTH if m in allowed and m in branch.modules and m in there)
    return Offer(branch, packages, modules, newest, note) if modules else None


def branch_offers(
    catalog: DriverCatalog, distribution: Distribution, source: Source, build: Build
) -> tuple[Offer, ...]:
    """Every installable branch of the catalog, lowest first."""
    found = (
        branch_offer(catalog, distribution, source, build, branch)
        for branch in catalog.branches.branches
    )
    return tuple(entry for entry in found if entry is not None)


@dataclass(frozen=True, slots=True)
class DriverPackages:
    """Package names for one distribution, branch, flavour and profile."""

    install: tuple[str, ...] = ()  # the whole family; all at the driver's version
    build: tuple[str, ...] = ()  # compiler, make, dkms
    headers: tuple[str, ...] = ()  # for the running kernel
    fabric_manager: tuple[str, ...] = ()  # at the driver's version, with an NVSwitch
    family: tuple[str, ...] = ()  # regular expressions of every driver package, any branch
    companions: tuple[str, ...] = ()  # installed with the driver, with independent versions
    rivals: tuple[str, ...] = ()  # packages of the other module flavour, to be removed
    others: tuple[str, ...] = ()  # like `family`, of driver packages that gpufleet keeps
    module: str = "nvidia"  # modprobe's name of the main kernel module
    revision: str = ""  # regular expression of the text after the version in this source


@dataclass(frozen=True, slots=True)
class DriverChoice:
    """The driver for a host, with reasons. With a blocker in `findings` it cannot be installed."""

    branch: str
    version: str | None  # exact if set by the user, or None for the newest of the branch
    modules: Literal["open", "proprietary"]
    build: Literal["dkms", "precompiled"]
    source: Literal["nvidia", "distro"]
    packages: DriverPackages
    repository: Repository | None  # None: the distribution's own
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    offer: Offer | None = None
    components: tuple[str, ...] = ()  # of the distribution's own archive: contrib, non-free, …

    @property
    def blocked(self) -> bool:
        """True if a finding prevents the installation of the choice."""
        return any(finding.blocks for finding in self.findings)

    @property
    def newest_known(self) -> str:
        """The newest version of the branch in the catalog."""
        return self.offer.newest if self.offer else ""


@dataclass(frozen=True, slots=True)
class DriverRequest:
    """All inputs of a driver choice. `directory`: the architecture's name in the repository."""

    catalog: DriverCatalog
    distribution: Distribution
    directory: str
    kernel: str
    devices: tuple[Device, ...]
    nvswitch: bool
    settings: DriverSettings
    today: date
    installed: tuple[str, str] | None = None  # branch and modules of the driver on the host
    flavour: str = ""  # of the kernel's metapackages; "": the last part of the kernel's release

    def having(self, **changes: object) -> DriverRequest:
        """A copy of the request with other settings."""
        return replace(self, settings=self.settings.model_copy(update=changes))


def is_over(branch: Branch, today: date) -> bool:
    """True if the branch is end of life on that day."""
    return branch.ended or (branch.end_of_life is not None and branch.end_of_life < today)


def usable_modules(request: DriverRequest, found: Offer) -> tuple[Modules, ...]:
    """Flavours of a branch that its packages, the GPUs, the kernel and the settings allow."""
    wanted = request.settings.modules
    return tuple(
        flavour
        for flavour in found.modules
        if flavour in common_modules(request.devices)
        and wanted in ("auto", flavour)
        and (flavour != "open" or kernel_takes_open(request.catalog, request.kernel))
    )


def candidate_branches(request: DriverRequest) -> tuple[Offer, ...]:
    """Every branch that works on this host, lowest first."""
    settings = request.settings
    offers = branch_offers(request.catalog, request.distribution, settings.source, settings.build)
    found = []
    for entry in offers:
        modules = usable_modules(request, entry)
        if modules and all(device.takes_branch(entry.branch.branch) for device in request.devices):
            found.append(replace(entry, usable=modules))
    return tuple(found)


def best_branch(request: DriverRequest) -> Offer | None:
    """The conservative choice: the newest supported branch of the longest-lived kind.

    If all are end of life, the newest long-term or production branch. The catalog's date decides
    about end of life, so that a choice never changes without a new catalog.
    """

    def rank(candidate: Offer) -> tuple[bool, int, int]:
        branch = candidate.branch
        alive = not is_over(branch, request.catalog.branches.as_of)
        cared_for = {"lts": 2, "production": 1}.get(branch.kind, 0)
        return alive, cared_for if alive else min(cared_for, 1), branch.branch

    return max(candidate_branches(request), key=rank, default=None)


def prefer_modules(request: DriverRequest, branch: int, modules: tuple[Modules, ...]) -> Modules:
    """Choose a usable flavour: the one of the installed driver of this branch, else open for new
    branches and for unknown GPUs."""
    if len(modules) == 1:
        return modules[0]
    for flavour in modules:
        if request.installed == (str(branch), flavour):
            return flavour
    unknown = any(device.generation is None for device in request.devices)
    rules = request.catalog.branches.open_modules
    return "open" if unknown or branch >= rules.default_from else "proprietary"


def advise_branch(request: DriverRequest) -> str:
    """The setting that gives the host a driver, as a sentence."""
    chosen = best_branch(request)
    if chosen:
        without = " and remove driver_version" if request.settings.version else ""
        return f'Set driver_branch = "{chosen.branch.branch}"{without} for this host.'
    other = {"nvidia": "distro", "distro": "nvidia"}[request.settings.source]
    for key, value in (("modules", "auto"), ("build", "dkms"), ("source", other)):
        if getattr(request.settings, key) != value and best_branch(request.having(**{key: value})):
            return f'Set driver_{key} = "{value}" for this host.'
    if best_branch(request.having(modules="auto", build="dkms", source=other)):
        return (
            f'Set driver_source = "{other}" and remove driver_modules and driver_build '
            "for this host."
        )
    gpus = name_devices(request.devices) or "it"
    return f"Move {gpus} to a distribution that has a branch for it."
