"""Types of data/distributions/*.yaml, data/families.yaml and data/kernels.yaml.

One file says everything about one distribution; whoever decides by a part of it is in the room of
that subject. Every entry says where it comes from (`source`) and, where it was tested, when
and how (`verified`).
"""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import Literal

from pydantic import TypeAdapter

from gpufleet.core.data import read, read_folder
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
    """What /etc/os-release says on such a host: ID, and VERSION_ID or the parts it begins with."""

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
    replaces: tuple[str, ...] = ()  # sections of .repo files that it replaces
    gone: tuple[str, ...] = ()  # regular expressions of the addresses that are gone
    provides: tuple[str, ...] = ()  # packages of the driver's prerequisites that it alone has


class ToolkitLimits(Sourced):
    """Which versions of the container toolkit a distribution can have."""

    tested: bool = False
    refused: tuple[str, ...] = ()  # version prefixes that cannot be installed
    reason: str = ""


class ExporterPackaging(Sourced):
    """Whether there are packages of dcgm-exporter and DCGM: seen in the repository, documented
    only, or none, for a `reason`."""

    packages: Literal["seen", "documented", "none"]
    reason: str = ""


class Systemd(Sourced):
    """The distribution's version of systemd."""

    version: int


class Distribution(Sourced):
    """A distribution, by NVIDIA's code for it."""

    code: str
    title: str
    also: tuple[str, ...] = ()  # distributions that are served by the same repository
    os: OsMatch
    style: Style
    manager: PackageManager
    end_of_life: date | None = None
    supported: bool = True  # in the newest installation guide of NVIDIA
    architectures: dict[str, str]  # `uname -m` -> directory of the repository
    key: str
    branches: BranchRange  # in NVIDIA's repository
    ceiling: str = ""  # last driver version built for it; where set, `branches` has no `last`
    modules: tuple[Modules, ...] = ("open", "proprietary")
    modules_reason: str = ""
    version_lock: str = ""
    driver_packages: tuple[str, ...]  # ids of sets of driver/packages.yaml
    headers: tuple[str, ...]
    build: tuple[str, ...]
    archive: Archive | None = None
    extra_repositories: tuple[ExtraRepository, ...] = ()
    subscriptions: tuple[str, ...] = ()  # ids of `os` whose repositories come with one
    toolkit: ToolkitLimits
    exporter: ExporterPackaging | None = None  # None: nothing is known of such packages
    systemd: Systemd | None = None  # None: new enough for everything


class DistributionFamily(Sourced):
    """Distributions of one kind of packages, by words in ID and ID_LIKE of /etc/os-release."""

    name: str
    packaging: Style
    words: tuple[str, ...]
    managers: tuple[PackageManager, ...]  # the preferred one first


class KernelHeaders(Sourced):
    """Kernels whose headers have another package name than those of their distribution."""

    name: str
    style: Style
    pattern: str  # of the whole release
    headers: tuple[str, ...]

    def templates(self, style: Style, release: str) -> tuple[str, ...] | None:
        """Package name templates for a release, None if it is another kernel's."""
        match = re.fullmatch(self.pattern, release) if style == self.style else None
        return match and tuple(_filled(name, match.groupdict()) for name in self.headers)


def _filled(template: str, words: dict[str, str | None]) -> str:
    for key, value in words.items():
        template = template.replace("{" + key + "}", value or "")
    return template


@lru_cache(maxsize=1)
def load_kernels() -> tuple[KernelHeaders, ...]:
    """Every kernel of kernels.yaml, in the order in which a release is compared with them."""
    return TypeAdapter(tuple[KernelHeaders, ...]).validate_python(read("core/kernels")["kernels"])


def headers_for(distribution: Distribution, release: str) -> tuple[str, ...]:
    """Package name templates of the headers of a kernel on a distribution."""
    found = (kernel.templates(distribution.style, release) for kernel in load_kernels())
    return next((names for names in found if names is not None), distribution.headers)


@lru_cache(maxsize=1)
def load_distributions() -> tuple[Distribution, ...]:
    """Every distribution, ordered by code.

    Raises pydantic.ValidationError where a file does not fit its type.
    """
    return tuple(Distribution.model_validate(entry) for entry in read_folder("core/distributions"))


@lru_cache(maxsize=1)
def load_families() -> tuple[DistributionFamily, ...]:
    """Every family, in the order in which a host is compared with them."""
    return TypeAdapter(tuple[DistributionFamily, ...]).validate_python(
        read("core/families")["families"]
    )
