"""Types of data/distributions/*.yaml, data/families.yaml and data/kernels.yaml.

One file holds all facts about one distribution. Code that decides by a fact is in the room of its
subject. Every entry names its source (`source`) and, if it was tested, when and how (`verified`).
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import Literal

from pydantic import TypeAdapter

from gpufleet.core.data import read_data, read_folder
from gpufleet.core.entries import (
    BranchRange,
    Build,
    Entry,
    Modules,
    PackageManager,
    Sourced,
    Style,
)


class OsMatch(Entry):
    """Matches /etc/os-release: ID, and VERSION_ID or the parts that it begins with."""

    ids: tuple[str, ...]
    version: str


class ArchiveBranch(Entry):
    """A driver branch in a distribution's own archive."""

    branch: int
    newest: str = ""
    modules: tuple[Modules, ...] = ("open", "proprietary")
    build: tuple[Build, ...] = ("dkms",)
    note: str = ""


class Archive(Sourced):
    """The driver branches in a distribution's own archive, and the archive components to enable."""

    components: tuple[str, ...] = ()
    third_parties: tuple[str, ...] = ()  # regular expressions of addresses with the same layout
    branches: tuple[ArchiveBranch, ...] = ()


class ExtraRepository(Sourced):
    """A repository with dependencies of the driver (base, EPEL), by name and address.

    `path` is set for an archive of discontinued repositories: the path below a mirror of the
    archives.
    """

    name: str
    url: str
    path: str = ""
    key: str = ""  # key file on the host
    key_url: str = ""  # address to fetch a missing key from
    key_path: str = ""  # path of the key below a mirror of the archives
    fingerprints: tuple[str, ...] = ()  # of the key; 40 digits, upper case
    replaces: tuple[str, ...] = ()  # sections of .repo files to replace
    gone: tuple[str, ...] = ()  # regular expressions of addresses that no longer work
    provides: tuple[str, ...] = ()  # prerequisites of the driver that only this repository has


class ToolkitLimits(Sourced):
    """The versions of the container toolkit that a distribution can install."""

    tested: bool = False
    refused: tuple[str, ...] = ()  # version prefixes that cannot be installed
    reason: str = ""


class ExporterPackaging(Sourced):
    """The packages of dcgm-exporter and DCGM: seen in the repository, only documented, or none,
    with a `reason`."""

    packages: Literal["seen", "documented", "none"]
    reason: str = ""


class Systemd(Sourced):
    """The distribution's version of systemd."""

    version: int


class Distribution(Sourced):
    """A distribution. `code` is NVIDIA's name for it."""

    code: str
    title: str
    also: tuple[str, ...] = ()  # codes of distributions that use the same repository
    os: OsMatch
    style: Style
    manager: PackageManager
    end_of_life: date | None = None
    supported: bool = True  # by NVIDIA's newest installation guide
    architectures: dict[str, str]  # `uname -m` -> directory of the repository
    key: str
    branches: BranchRange  # in NVIDIA's repository
    ceiling: str = ""  # last driver version built for it; `branches` then has no `last`
    modules: tuple[Modules, ...] = ("open", "proprietary")
    modules_reason: str = ""
    version_lock: str = ""
    driver_packages: tuple[str, ...]  # ids of package sets in driver/packages.yaml
    headers: tuple[str, ...]
    build: tuple[str, ...]
    archive: Archive | None = None
    extra_repositories: tuple[ExtraRepository, ...] = ()
    subscriptions: tuple[str, ...] = ()  # ids of `os` with repositories by subscription
    toolkit: ToolkitLimits
    exporter: ExporterPackaging | None = None  # None: nothing known about such packages
    systemd: Systemd | None = None  # None: new enough for everything


class DistributionFamily(Sourced):
    """Distributions with the same packaging, by words in ID and ID_LIKE of /etc/os-release."""

    name: str
    packaging: Style
    words: tuple[str, ...]
    managers: tuple[PackageManager, ...]  # preferred one first


class KernelHeaders(Sourced):
    """Kernels whose header packages are not named as the distribution's own."""

    name: str
    style: Style
    pattern: str  # matches the whole release
    headers: tuple[str, ...]

    def templates(self, style: Style, release: str) -> tuple[str, ...] | None:
        """Package name templates for a release. None if the release is of another kernel."""
        match = re.fullmatch(self.pattern, release) if style == self.style else None
        return match and tuple(_filled(name, match.groupdict()) for name in self.headers)


def _filled(template: str, words: dict[str, str | None]) -> str:
    for key, value in words.items():
        template = template.replace("{" + key + "}", value or "")
    return template


@lru_cache(maxsize=1)
def load_kernels() -> tuple[KernelHeaders, ...]:
    """Every kernel of kernels.yaml, in the order in which releases are matched."""
    return TypeAdapter(tuple[KernelHeaders, ...]).validate_python(
        read_data("core/kernels")["kernels"]
    )


def headers_for(distribution: Distribution, release: str) -> tuple[str, ...]:
    """Package name templates of a kernel's headers on a distribution."""
    found = (kernel.templates(distribution.style, release) for kernel in load_kernels())
    return next((names for names in found if names is not None), distribution.headers)


@lru_cache(maxsize=1)
def load_distributions() -> tuple[Distribution, ...]:
    """Every distribution, ordered by code.

    Raises pydantic.ValidationError if a file does not fit its type.
    """
    return tuple(Distribution.model_validate(entry) for entry in read_folder("core/distributions"))


@lru_cache(maxsize=1)
def load_families() -> tuple[DistributionFamily, ...]:
    """Every family, in the order in which hosts are matched."""
    return TypeAdapter(tuple[DistributionFamily, ...]).validate_python(
        read_data("core/families")["families"]
    )
