"""Types of distributions.yaml and repositories.yaml, and all that decisions about packages know.

Every entry says where it comes from (`source`) and, where it was really tried, when and how
(`verified`).
"""

from __future__ import annotations

from datetime import date

from pydantic import Field

from gpufleet.core.entries import BranchRange, Build, Entry, Modules, Sourced, Style
from gpufleet.facts.model import PackageManager
from gpufleet.packages.models import CudaRepository


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


class PackageCatalog(Entry):
    """What is known of distributions and repositories."""

    distributions: tuple[Distribution, ...]
    cuda: CudaRepository

    def distribution(self, code: str) -> Distribution | None:
        return next((d for d in self.distributions if d.code == code), None)
