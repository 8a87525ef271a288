"""Turns a driver choice into package names and a repository."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from gpufleet.core.distributions import headers_for
from gpufleet.core.entries import Modules, Profile, Role
from gpufleet.core.findings import Finding
from gpufleet.driver.catalog import PackageSet
from gpufleet.driver.choice import DriverPackages, DriverRequest
from gpufleet.driver.findings import choice as kinds
from gpufleet.packages.repository import Repository, repository_at


def driver_packages(
    request: DriverRequest, packages: PackageSet, branch: int, modules: Modules
) -> DriverPackages:
    """The package names of one branch and flavour for this host."""
    settings, distribution = request.settings, request.distribution
    filled = partial(_filled, request, branch)
    names = partial(_names, packages, branch, modules, settings.profile)
    fabric = [
        name for each in packages.fabric_manager if each.covers(branch) for name in each.names
    ]
    build = settings.build == "dkms"
    known = request.catalog.family(distribution.style)
    return DriverPackages(
        install=filled(names("dkms", "kernel", "modules", "userland", "desktop")),
        build=distribution.build if build else (),
        headers=filled(headers_for(distribution, request.kernel)) if build else (),
        fabric_manager=filled(fabric) if request.nvswitch else (),
        family=known.patterns,
        others=known.others,
        companions=filled(names("own")),
        module=packages.module,
        revision=packages.revision,
        rivals=filled(_rivals(packages, branch, modules)),
    )


def _names(
    packages: PackageSet, branch: int, modules: Modules, profile: Profile, *roles: Role
) -> list[str]:
    """Name templates of the groups with one of `roles` that apply to this choice, sorted."""
    return sorted(
        name
        for group in packages.groups
        if group.role in roles
        and group.covers(branch)
        and group.modules in (None, modules)
        and profile in group.profiles
        for name in group.names
    )


def _rivals(packages: PackageSet, branch: int, modules: Modules) -> list[str]:
    """Packages that only other module flavours have. They conflict with the chosen flavour."""
    groups = [group for group in (*packages.groups, *packages.meta) if group.covers(branch)]
    ours = {name for group in groups if group.modules in (None, modules) for name in group.names}
    return sorted({name for group in groups for name in group.names} - ours)


def no_packages(request: DriverRequest) -> DriverPackages:
    """For a blocked choice: only the patterns that recognise an installed driver."""
    known = request.catalog.family(request.distribution.style)
    return DriverPackages(family=known.patterns, others=known.others)


def driver_repository(request: DriverRequest) -> tuple[Repository | None, tuple[Finding, ...]]:
    """NVIDIA's repository for the host, or its mirror. None for the distribution's own archive."""
    settings, distribution, cuda = request.settings, request.distribution, request.catalog.cuda
    if settings.source == "distro":
        return None, ()
    key, own = cuda.key(distribution.key), settings.repo_key_fingerprint
    url = f"{settings.repo_url or cuda.base}/{distribution.code}/{request.directory}/"
    repository = repository_at(
        url,
        url + key.file,
        [own] if own else key.fingerprints,
        distribution,
        cuda.layouts,
        role="driver",
        chosen=bool(settings.repo_url),
        architecture=request.directory,
    )
    if repository.key_fingerprints:
        return repository, ()
    return repository, (kinds.UNKNOWN_KEY_FINGERPRINT(file=key.file, title=distribution.title),)


def _filled(request: DriverRequest, branch: int, templates: Iterable[str]) -> tuple[str, ...]:
    """Fill in package name templates. A name with an unknown value is omitted."""
    kernel = request.kernel.rsplit("-", 1)
    values = {
        "branch": str(branch),
        "version": request.settings.version,
        "kernel": request.kernel,
        "kernel_version": kernel[0],
        "flavour": request.flavour or kernel[-1],
    }
    filled = []
    for name in templates:
        for key, value in values.items():
            if value:
                name = name.replace("{" + key + "}", value)
        if "{" not in name:
            filled.append(name)
    return tuple(filled)
