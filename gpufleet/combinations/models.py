"""Types of combinations.yaml, and the components of a host or cluster that it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from pydantic import Field

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.core.findings import Severity
from gpufleet.core.versions import version_tuple

Component = Literal[
    "driver",
    "driver-build",  # the driver that DKMS builds for `kernel`
    "toolkit",
    "libnvidia-container",
    "docker",
    "containerd",
    "crio",
    "kernel",
    "kubelet",
    "dcgm",
    "kubernetes",  # the API server
    "gpu-operator",  # this and the next: versions of charts
    "nvidia-device-plugin",
]
Trait = Literal[
    "builds-proprietary",  # the modules to be built are the proprietary ones
    "cgroups-v2",
    "compressed-module",
    "gke",
    "k3s",
    "kubelet",
    "mig",
    "nvidia-current",  # Debian's name of the module
    "operator-driver",  # the GPU Operator installs the driver
    "operator-toolkit",  # the GPU Operator installs the toolkit
    "rke2",
]


class VersionRange(Entry):
    """Versions from `since` up to, not including, `until`. "" means no limit.

    Example: since 1.18.0, until 1.18.1 is 1.18.0 alone.
    """

    since: str = ""
    until: str = ""

    def covers(self, version: str) -> bool:
        """False for a version that has no number."""
        number = version_tuple(version)
        above = number >= version_tuple(self.since)
        return bool(number) and above and (not self.until or number < version_tuple(self.until))


class Combination(Sourced):
    """Versions that do not work together: each component is in one of its ranges."""

    id: str = Field(pattern=r"[a-z0-9.]+(-[a-z0-9.]+)+")
    versions: dict[Component, tuple[VersionRange, ...]] = Field(min_length=1)
    traits: tuple[Trait, ...] = ()  # all of them
    happens: str  # a sentence
    remedy: str  # sentences
    severity: Literal[Severity.WARNING, Severity.INFO] = Severity.WARNING

    def fits(self, found: Components) -> bool:
        """True if every component is known and in a range, and the traits are known."""
        return all(
            any(each.covers(found.versions.get(name, "")) for each in ranges)
            for name, ranges in self.versions.items()
        ) and found.traits.issuperset(self.traits)


class Combinations(Entry):
    """combinations.yaml. `packages`: packages whose version is that of a component."""

    as_of: date
    packages: dict[Component, tuple[str, ...]]
    combinations: tuple[Combination, ...]


@dataclass(frozen=True, slots=True)
class Components:
    """Versions by component. A component that is absent, or has the version "", is not known."""

    versions: Mapping[Component, str] = field(default_factory=dict)
    traits: frozenset[Trait] = frozenset()


NO_COMPONENTS = Components()
load_combinations = entry_loader(Combinations, "combinations/combinations")
