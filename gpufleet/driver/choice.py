"""What the driver's resolver returns: a choice, its reason, and findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpufleet.core.findings import Finding
from gpufleet.packages.repository import Repository


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
    others: tuple[str, ...] = ()  # the same of driver packages that gpufleet does not replace
    module: str = "nvidia"  # modprobe's name of the main kernel module
    revision: str = ""  # regular expression of what follows the version, in packages of this source


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
