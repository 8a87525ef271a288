"""The packages of the mirror: versions from contents.yaml, names from the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from gpufleet.core.distributions import Distribution
from gpufleet.core.entries import Modules
from gpufleet.driver.catalog import NameGroup, PackageSet
from gpufleet.driver.choice import package_set
from gpufleet.node.catalog import load_catalog

PLACEHOLDERS = ("{branch}", "{version}")


@dataclass(frozen=True, slots=True)
class Member:
    """One package of a driver's family, by its name in the catalog."""

    name: str  # nvidia-dkms-580-open
    base: str  # name without branch and version: nvidia-dkms-open
    role: str  # dkms, kernel, userland, desktop, own, meta, fabric_manager, pinning
    modules: Modules | None = None  # None: for either


@dataclass(frozen=True, slots=True)
class Family:
    """All packages of one driver version for one distribution."""

    distribution: str
    version: str  # 580.159.03
    revision: str  # 0ubuntu1
    epoch: str
    members: tuple[Member, ...]

    @property
    def branch(self) -> str:
        return self.version.partition(".")[0]

    def role(self, *roles: str, modules: str | None = None) -> list[Member]:
        """Members of these roles for the module flavour `modules` (None: any)."""
        return [
            member
            for member in self.members
            if member.role in roles and (not modules or member.modules in (None, modules))
        ]

    def has(self, base: str) -> bool:
        return any(member.base == base for member in self.members)

    def package_version(self, member: Member) -> str:
        """The complete version of a member's package."""
        plain = member.role in ("meta", "fabric_manager", "pinning")
        if self.epoch:
            plain = member.role == "fabric_manager"  # NVIDIA builds it without an epoch
            return f"{'' if plain else f'{self.epoch}:'}{self.version}-{self.revision}"
        return f"{self.version}-{1 if plain else self.revision}"


@cache
def contents() -> Mapping[str, Any]:
    """contents.yaml."""
    loaded: Mapping[str, Any] = yaml.safe_load((files(__package__) / "contents.yaml").read_text())
    return loaded


def distributions() -> list[str]:
    """Codes of the distributions with drivers in the mirror."""
    return [code for entry in contents()["driver"] for code in entry["distributions"]]


def driver_versions(distribution: str) -> Mapping[str, str]:
    """Version -> revision of the mirror's drivers for `distribution`."""
    for entry in contents()["driver"]:
        if distribution in entry["distributions"]:
            versions: Mapping[str, str] = entry["versions"]
            return versions
    raise KeyError(distribution)


def families(distribution: str) -> list[Family]:
    """The driver families of the mirror's CUDA repository for `distribution`."""
    epochs = {d: e.get("epoch", "") for e in contents()["driver"] for d in e["distributions"]}
    return [
        Family(
            distribution,
            version,
            revision,
            epochs[distribution],
            tuple(_members(_package_set(distribution, int(version[:3])), version)),
        )
        for version, revision in driver_versions(distribution).items()
    ]


def distribution(code: str) -> Distribution:
    """The catalog's entry for a distribution: ubuntu2204, rhel7."""
    return next(entry for entry in load_catalog().distributions if entry.code == code)


def _package_set(code: str, branch: int) -> PackageSet:
    found = package_set(load_catalog(), distribution(code), "nvidia", "dkms", branch)
    if found is None:
        raise KeyError(f"the catalog has no driver packages for {code}, branch {branch}")
    return found


def _members(names: PackageSet, version: str) -> Iterator[Member]:
    groups: list[tuple[str, NameGroup]] = [(g.role, g) for g in (*names.groups, *names.depends)]
    groups += [("meta", group) for group in names.meta]
    groups += [("fabric_manager", group) for group in names.fabric_manager]
    branch = int(version[:3])
    for role, group in groups:
        if group.covers(branch):
            for template in group.names:
                yield _member(template, role, group.modules, version)
    if names.pinning and names.pinning.covers(branch):
        for template in (names.pinning.branch, names.pinning.version):
            yield _member(template, "pinning", None, version)


def _member(template: str, role: str, modules: Modules | None, version: str) -> Member:
    name = template.format(branch=version[:3], version=version)
    base = re.sub("-?" + "|-?".join(map(re.escape, PLACEHOLDERS)), "", template)
    return Member(name, base, role, modules)
