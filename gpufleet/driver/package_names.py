"""Types of packages.yaml: names of driver packages."""

from __future__ import annotations

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
    revision: str = ""  # regular expression of what follows the version; "": not known


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
