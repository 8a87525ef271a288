"""Branches that are available for a distribution, from one source and in one build."""

from __future__ import annotations

from dataclasses import dataclass

from gpufleet.core.distributions import ArchiveBranch, Distribution
from gpufleet.core.entries import BranchRange, Build, Modules, Source
from gpufleet.core.versions import branch_of, version_tuple
from gpufleet.driver.catalog import Branch, DriverCatalog
from gpufleet.driver.needs import BOTH
from gpufleet.driver.package_names import PackageSet


@dataclass(frozen=True, slots=True)
class Offer:
    """An installable branch, and the module flavours that have packages."""

    branch: Branch
    packages: PackageSet
    modules: tuple[Modules, ...]
    newest: str
    note: str = ""


def package_set(
    catalog: DriverCatalog, distribution: Distribution, source: Source, build: Build, branch: int
) -> PackageSet | None:
    """The package names of a branch, or None if it has no packages."""
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


def offer(
    catalog: DriverCatalog, distribution: Distribution, source: Source, build: Build, branch: Branch
) -> Offer | None:
    """The offer of one branch; None if it cannot be installed."""
    packages = package_set(catalog, distribution, source, build, branch.branch)
    if packages is None:
        return None
    allowed, newest, note = distribution.modules, branch.newest, ""
    if source == "distro":
        archived = _archived(distribution, build, branch.branch)
        if archived is None:
            return None
        allowed = tuple(m for m in archived.modules if m in allowed)
        newest, note = archived.newest or newest, archived.note
    elif not branches_of(distribution).covers(branch.branch):
        return None
    elif distribution.ceiling and branch.branch == branch_of(distribution.ceiling):
        newest = distribution.ceiling
    modules = tuple(
        m
        for m in BOTH
        if m in allowed and m in branch.modules and _has_modules(packages, branch.branch, m)
    )
    return Offer(branch, packages, modules, newest, note) if modules else None


def _has_modules(packages: PackageSet, branch: int, modules: Modules) -> bool:
    """True if this packaging has kernel modules of that flavour for the branch."""
    return packages.covers(branch) and any(
        group.modules == modules and group.covers(branch) for group in packages.groups
    )


def offers(
    catalog: DriverCatalog, distribution: Distribution, source: Source, build: Build
) -> tuple[Offer, ...]:
    """Every installable branch of the catalog, lowest first."""
    found = (
        offer(catalog, distribution, source, build, branch) for branch in catalog.branches.branches
    )
    return tuple(entry for entry in found if entry is not None)


def _archived(distribution: Distribution, build: Build, branch: int) -> ArchiveBranch | None:
    archive = distribution.archive
    for entry in archive.branches if archive else ():
        if entry.branch == branch and build in entry.build:
            return entry
    return None
