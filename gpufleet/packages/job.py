"""A package transaction that a role requests, and the result of its first step. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufleet.core.entries import PackageManager
from gpufleet.facts.files import HOME
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import RoleEntry
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.pins import preferences
from gpufleet.packages.repository import RepositoryPlan
from gpufleet.packages.transaction import Family, Transaction


@dataclass(frozen=True, slots=True)
class Job:
    """One family to install, upgrade or downgrade to a version."""

    role: str
    family: Family
    facts: NodeFacts
    repository: RepositoryPlan
    patterns: Sequence[str]  # regular expressions of the packages that may be removed
    lock_timeout: int  # seconds to wait for another package manager
    pin_file: str = ""  # apt preferences that pin the family to the version; "": none
    reports: bool = True  # its version is the role's in the report
    makes: Sequence[tuple[str, str]] = ()  # files that its packages create: path, sha256 before

    @property
    def needed(self) -> bool:
        return self.family.needed

    @property
    def manager(self) -> PackageManager:
        manager = self.facts.package_manager
        assert manager, "a host without a package manager is blocked by preflight"
        return manager

    def pins(self, version: str) -> tuple[FileWrite, ...]:
        """The pins of a version that the host lacks."""
        if not self.pin_file:
            return ()
        file = preferences(self.pin_file, self.family.title, self.family.packages, version)
        return () if file.is_on(self.facts) else (file,)

    @property
    def record(self) -> str:
        """File on the host that lists the packages from before the transaction."""
        return f"{HOME}/{self.role}.before"

    @property
    def ours(self) -> str:
        """File on the host that lists the packages that its transactions install."""
        return f"{self.record}.ours"


@dataclass(frozen=True, slots=True)
class Found:
    """The result of `resolve_and_download` for the steps that follow."""

    transaction: Transaction
    added: tuple[str, ...] = ()  # what yum or dnf would install for it


def versions_of(
    names: Sequence[str], facts: NodeFacts, found: Found | None, old: RoleEntry
) -> dict[str, str]:
    """Versions by package: those installed in this run, else the host's versions of `names` and of
    what `old` records: a transaction also moves packages of the family that no plan names."""
    if found:
        return dict(found.transaction.install)
    there = facts.packages
    known = dict.fromkeys((*names, *old.packages))
    return {name: there[name].version for name in known if name in there}
