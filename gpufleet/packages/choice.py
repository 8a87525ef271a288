"""What the catalog's resolvers return: a choice, its reason, and findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpufleet.core.entries import PackageManager
from gpufleet.core.findings import Finding


@dataclass(frozen=True, slots=True)
class Repository:
    """A package repository: its location and signing key."""

    name: str  # cuda-ubuntu2204-x86_64
    manager: PackageManager
    url: str  # with a trailing slash: …/ubuntu2204/x86_64/
    key_url: str
    key_fingerprints: tuple[str, ...]  # any of them is accepted; 40 digits, upper case
    file: str  # /etc/apt/sources.list.d/cuda-ubuntu2204-x86_64.list
    keyring: str  # apt: file in signed-by; rpm: file in gpgkey
    signed_packages: bool = True  # rpm: gpgcheck
    signed_metadata: bool = True  # rpm: repo_gpgcheck


@dataclass(frozen=True, slots=True)
class DriverPackages:
    """Package names for one distribution, branch, flavour and profile."""

    install: tuple[str, ...]  # the whole family; all at the driver's version
    build: tuple[str, ...]  # compiler, make, dkms
    headers: tuple[str, ...]  # for the running kernel
    fabric_manager: tuple[str, ...]  # at the driver's version, with an NVSwitch
    family: tuple[str, ...]  # regular expressions (full match) of every driver package, any branch
    companions: tuple[str, ...] = ()  # installed with the driver, with versions of their own
    rivals: tuple[str, ...] = ()  # of the other module flavour: to be removed
    module: str = "nvidia"  # modprobe's name of the main kernel module


@dataclass(frozen=True, slots=True)
class DriverChoice:
    """The driver for a host, and why. A blocker among `findings`: it cannot be installed."""

    branch: str
    version: str | None  # exact if set by the user; else the newest of the branch
    newest_known: str  # newest version of the branch in the catalog
    modules: Literal["open", "proprietary"]
    build: Literal["dkms", "precompiled"]
    source: Literal["nvidia", "distro"]
    packages: DriverPackages
    repository: Repository | None  # None: the distribution's own
    reason: str
    findings: tuple[Finding, ...] = ()
    components: tuple[str, ...] = ()  # of the distribution's own archive: contrib, non-free, …

    @property
    def blocked(self) -> bool:
        """True where a finding says that the choice cannot be carried out."""
        return any(finding.blocks for finding in self.findings)


@dataclass(frozen=True, slots=True)
class ToolkitChoice:
    """The container toolkit version for a host, and why."""

    version: str
    packages: tuple[str, ...]  # all at `version`
    repository: Repository
    reason: str
    findings: tuple[Finding, ...] = ()

    @property
    def blocked(self) -> bool:
        """True where a finding says that the choice cannot be carried out."""
        return any(finding.blocks for finding in self.findings)


@dataclass(frozen=True, slots=True)
class ExporterChoice:
    """The exporter for a host, as packages and as a container, and why."""

    version: str
    dcgm: str  # the matching version of DCGM; "" if unknown
    dcgm_packages: tuple[str, ...]  # all at DCGM's version
    exporter_packages: tuple[str, ...]  # at the exporter's version, or one with that prefix
    image: str
    no_packages: str  # why there are no packages for the host; "" if there are
    reason: str
    findings: tuple[Finding, ...] = ()
