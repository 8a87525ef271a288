"""Which packages the mirror holds: contents.yaml, and the names in the catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

PLACEHOLDERS = ("{branch}", "{version}")


@dataclass(frozen=True, slots=True)
class Member:
    """One package of a driver's family, as the catalog names it."""

    name: str  # nvidia-dkms-580-open
    base: str  # the name without branch and version: nvidia-dkms-open
    role: str  # dkms, kernel, userland, desktop, own, meta, fabric_manager, pinning
    modules: Literal["open", "proprietary"] | None = None  # None: goes with either


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
        """Members of these roles that go with the module flavour `modules` (None: any)."""
        return [
            member
            for member in self.members
            if member.role in roles and (not modules or member.modules in (None, modules))
        ]

    def has(self, base: str) -> bool:
        return any(member.base == base for member in self.members)

    def package_version(self, member: Member) -> str:
        """Complete version of a member's package."""
        plain = member.role in ("meta", "fabric_manager", "pinning")
        if self.epoch:
            plain = member.role == "fabric_manager"  # NVIDIA's own builds have no epoch
            return f"{'' if plain else f'{self.epoch}:'}{self.version}-{self.revision}"
        return f"{self.version}-{1 if plain else self.revision}"


@cache
def contents() -> Mapping[str, Any]:
    """contents.yaml."""
    loaded: Mapping[str, Any] = yaml.safe_load((files(__package__) / "contents.yaml").read_text())
    return loaded


@cache
def _catalog_sets() -> tuple[Mapping[str, Any], ...]:
    text = (files("gpufleet.catalog") / "packages.yaml").read_text()
    return tuple(yaml.safe_load(text)["sets"])


def driver_versions(distribution: str) -> Mapping[str, str]:
    """Version -> revision of the drivers that the mirror holds for `distribution`."""
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


def _package_set(distribution: str, branch: int) -> Mapping[str, Any]:
    for entry in _catalog_sets():
        right = entry["source_kind"] == "nvidia" and entry["build"] == "dkms"
        if right and distribution in entry["distributions"] and _in_range(entry, branch):
            return entry
    raise KeyError(f"the catalog has no driver packages for {distribution}, branch {branch}")


def _members(entry: Mapping[str, Any], version: str) -> Iterator[Member]:
    branch = version[:3]
    lists = {
        None: [*entry["groups"], *entry.get("depends", [])],
        "meta": entry.get("meta", []),
        "fabric_manager": entry.get("fabric_manager", []),
    }
    for role, groups in lists.items():
        for group in groups:
            if _in_range(group, int(branch)):
                for template in group["names"]:
                    yield _member(template, role or group["role"], group.get("modules"), version)
    pinning = entry.get("pinning")
    if pinning and _in_range(pinning, int(branch)):
        for template in (pinning["branch"], pinning["version"]):
            yield _member(template, "pinning", None, version)


def _member(
    template: str, role: str, modules: Literal["open", "proprietary"] | None, version: str
) -> Member:
    name = template.format(branch=version[:3], version=version)
    base = re.sub("-?" + "|-?".join(map(re.escape, PLACEHOLDERS)), "", template)
    return Member(name, base, role, modules)


def _in_range(entry: Mapping[str, Any], branch: int) -> bool:
    return bool(entry.get("first", 0) <= branch <= entry.get("last", 9999))
