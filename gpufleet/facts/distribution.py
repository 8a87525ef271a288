"""Which distribution a host is, by /etc/os-release and what is known of distributions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpufleet.core.distributions import Distribution, DistributionFamily
from gpufleet.core.entries import PackageManager, Style
from gpufleet.facts.model import OsRelease

_PROGRAMS: dict[PackageManager, str] = {"apt": "apt-get"}  # others have their manager's name


def distribution_of(os: OsRelease, known: Sequence[Distribution]) -> Distribution | None:
    """The entry of a host's distribution; None where there is none for it."""
    parts = os.version_id.split(".")
    return next((entry for entry in known if os.id in entry.os.ids and _fits(parts, entry)), None)


def code_of(os: OsRelease, known: Sequence[Distribution]) -> str:
    """NVIDIA's code of a host's distribution: ubuntu2204, debian12, rhel7, amzn2023, sles15.

    A version that is not known has a code like those of its relatives: fedora42, ubuntu2310.
    """
    found = distribution_of(os, known)
    if found:
        return found.code
    relative = next((entry for entry in known if os.id in entry.os.ids), None)
    stem = relative.code.rstrip("0123456789") if relative else os.id
    depth = len(relative.os.version.split(".")) if relative else 1
    return stem + "".join(os.version_id.split(".")[:depth])


def manager_of(
    os: OsRelease,
    packaging: Style,
    programs: Collection[str],
    known: Sequence[Distribution],
    families: Sequence[DistributionFamily],
) -> PackageManager | None:
    """The package manager that owns a host's packages, of the `programs` that there are."""
    wanted = _family(os, packaging, families).managers
    found = distribution_of(os, known)
    if found and found.manager in wanted:
        # EL 7 can have dnf from an extra repository; yum is what owns its configuration
        wanted = wanted[wanted.index(found.manager) :]
    return next((name for name in wanted if _PROGRAMS.get(name, name) in programs), None)


def _fits(parts: Sequence[str], entry: Distribution) -> bool:
    wanted = entry.os.version.split(".")
    return parts[: len(wanted)] == wanted


def _family(
    os: OsRelease, packaging: Style, families: Sequence[DistributionFamily]
) -> DistributionFamily:
    alike = [family for family in families if family.packaging == packaging]
    names = " ".join((os.id, *os.id_like))
    fits = (family for family in alike if any(word in names for word in family.words))
    return next(fits, alike[-1])
