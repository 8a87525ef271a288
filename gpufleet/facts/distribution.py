"""Identifies the distribution of a host by /etc/os-release and the catalog. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from gpufleet.core.distributions import Distribution, load_distributions, load_families
from gpufleet.core.entries import PackageManager, Style

_PROGRAMS: dict[PackageManager, str] = {"apt": "apt-get"}  # if not the manager's name


@dataclass(frozen=True, slots=True)
class OsRelease:
    """/etc/os-release, with the values unquoted."""

    id: str
    version_id: str
    id_like: tuple[str, ...] = ()
    codename: str = ""
    pretty_name: str = ""

    @property
    def distribution(self) -> Distribution | None:
        """The catalog's entry, or None if the catalog does not have the distribution."""
        return _distribution(self.id, self.version_id)

    @property
    def code(self) -> str:
        """NVIDIA's code of the distribution: ubuntu2204, debian12, rhel7, amzn2023, sles15.

        An unknown version gets a code in the style of its relatives: fedora42, ubuntu2310.
        """
        if self.distribution:
            return self.distribution.code
        relative = next((entry for entry in load_distributions() if self.id in entry.os.ids), None)
        stem = relative.code.rstrip("0123456789") if relative else self.id
        depth = len(relative.os.version.split(".")) if relative else 1
        return stem + "".join(self.version_id.split(".")[:depth])


@lru_cache(maxsize=256)
def _distribution(name: str, version: str) -> Distribution | None:
    parts = version.split(".")
    for entry in load_distributions():
        wanted = entry.os.version.split(".")
        if name in entry.os.ids and parts[: len(wanted)] == wanted:
            return entry
    return None


def manager_of(os: OsRelease, packaging: Style, programs: Collection[str]) -> PackageManager | None:
    """The package manager that owns a host's packages, out of the existing `programs`."""
    alike = [family for family in load_families() if family.packaging == packaging]
    names = " ".join((os.id, *os.id_like))
    fits = (family for family in alike if any(word in names for word in family.words))
    wanted = next(fits, alike[-1]).managers
    if os.distribution and os.distribution.manager in wanted:
        # EL 7 can have dnf from an extra repository, but yum owns its configuration
        wanted = wanted[wanted.index(os.distribution.manager) :]
    return next((name for name in wanted if _PROGRAMS.get(name, name) in programs), None)
