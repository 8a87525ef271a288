"""Package transactions: versions, and the arguments for each package manager."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpufleet.core.entries import PackageManager
from gpufleet.core.findings import Finding
from gpufleet.facts.distribution import distribution_of
from gpufleet.facts.model import NodeFacts, Package
from gpufleet.facts.record import RoleEntry
from gpufleet.packages import findings
from gpufleet.packages.catalog import PackageCatalog

Available = Mapping[str, tuple[str, ...]]  # name -> versions as the package manager writes them
SHOWN_VERSIONS = 8
_HEADERS = re.compile(r"(linux|pve|proxmox)-headers-.+|kernel[\w.-]*-devel.*")
NEW_KERNEL = re.compile(r"linux-image-.+|(proxmox|pve)-kernel-.+")


@dataclass(frozen=True, slots=True)
class Family:
    """Packages that must have the same version."""

    title: str  # for messages: "driver"
    packages: tuple[str, ...]
    prefix: str  # what the version must start with: "580." or "580.95.05" or "1.20.0"
    exact: bool  # the prefix is the whole version
    installed: tuple[str, ...]  # installed packages of the same kind
    prerequisites: tuple[str, ...] = ()  # at any version
    conflicting: tuple[str, ...] = ()  # to be removed, even at the right version
    companions: tuple[str, ...] = ()  # in the same transaction, with versions of their own
    needed: bool = True  # the host lacks some of it, or has another version
    lowest: str = ""  # a lower version would be a downgrade that nobody asked for; "": any


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction of the package manager."""

    version: str  # upstream version of the family
    install: tuple[tuple[str, str], ...]  # name, version as the package manager writes it
    prerequisites: tuple[str, ...]
    remove: tuple[str, ...]
    companions: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.install)


def upstream(version: str) -> str:
    """`3:580.95.05-1.el9` -> `580.95.05`."""
    return Package("", version, "").upstream


def order(version: str) -> tuple[int, ...]:
    """A sort key for versions of digits and dots; other characters separate too."""
    return tuple(map(int, re.findall(r"\d{1,9}", version)))  # int() refuses thousands of digits


def choose_transaction(family: Family, available: Available) -> Transaction | Finding:
    """The newest matching version of *every* package of the family, or why there is none."""
    first = family.packages[0]
    fitting = [
        {upstream(version) for version in available.get(name, ()) if _fits(family, version)}
        for name in family.packages
    ]
    common = set.intersection(*fitting)
    if not common:
        lacking = next(
            (name for name, versions in zip(family.packages, fitting, strict=True) if not versions),
            first,
        )
        return findings.VERSION_NOT_THERE(
            what=f"{family.title} {family.prefix.rstrip('.')}".strip(),
            package=lacking,
            available=_listed(available.get(lacking, ())),
        )
    version = max(common, key=order)
    if order(version) < order(family.lowest):
        return findings.VERSION_NOT_THERE(
            what=f"{family.title} {family.lowest} or newer, and an older one has to be requested",
            package=first,
            available=_listed(common),
        )
    kept = [
        name
        for name in family.installed
        if name not in family.packages
        and name not in family.conflicting
        and _at(available.get(name, ()), version)
    ]
    names = [*family.packages, *kept]
    return Transaction(
        version=version,
        install=tuple((name, _at(available[name], version)) for name in names),
        prerequisites=family.prerequisites,
        remove=tuple(name for name in family.installed if name not in (*names, *family.companions)),
        companions=family.companions,
    )


def _fits(family: Family, version: str) -> bool:
    plain = upstream(version)
    return plain == family.prefix if family.exact else plain.startswith(family.prefix)


def _at(versions: Iterable[str], version: str) -> str:
    """The newest packaging of `version` among `versions`, or ""."""
    return max((item for item in versions if upstream(item) == version), key=order, default="")


def _listed(versions: Iterable[str]) -> str:
    newest_first = sorted({upstream(version) for version in versions}, key=order, reverse=True)
    if not newest_first:
        return "none"
    shown = ", ".join(newest_first[:SHOWN_VERSIONS])
    return shown + (", …" if len(newest_first) > SHOWN_VERSIONS else "")


def install_words(manager: PackageManager, plan: Transaction, lock_timeout: int) -> list[str]:
    """The command that runs `plan` with apt; with yum and dnf, only its prerequisites."""
    if manager == "apt":
        wanted = [f"{name}={version}" for name, version in plan.install]
        gone = [f"{name}-" for name in plan.remove]
        more = (*plan.companions, *plan.prerequisites)
        return [*_apt(lock_timeout), "install", *wanted, *more, *gone]
    # the packages of the next transaction are downloaded: this one must not remove them
    return [manager, "-y", "--setopt=keepcache=1", "install", *plan.prerequisites]


def rpm_words(plan: Transaction) -> list[str]:
    """Arguments of scripts/rpm_transaction.sh: -NAME removes, NAME=VERSION installs."""
    gone = [f"-{name}" for name in plan.remove]
    return [*gone, *(f"{name}={version}" for name, version in plan.install), *plan.companions]


def _apt(lock_timeout: int) -> list[str]:
    return [
        "apt-get", "-y", "-q", "--fix-broken", "--no-install-recommends", "--allow-downgrades",
        "--allow-change-held-packages",
        "-o", f"DPkg::Lock::Timeout={lock_timeout}",
        "-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold",
    ]  # fmt: skip


def to_hold(packages: Sequence[str], facts: NodeFacts, *, moves: bool) -> tuple[str, ...]:
    """Packages to hold at the end: a move ends apt's hold, and yum's lock has a version."""
    return tuple(name for name in packages if moves or not _is_held(name, facts))


def lock_plugin(facts: NodeFacts, catalog: PackageCatalog, *, hold: bool) -> tuple[str, ...]:
    """The version lock plugin of yum and dnf, if a hold is requested and it is missing."""
    distribution = distribution_of(facts.os, catalog.distributions)
    name = distribution.version_lock if distribution else ""
    return (name,) if hold and name and name not in facts.packages else ()


def still_held(recorded: RoleEntry, facts: NodeFacts, *, moved: bool) -> bool:
    """Whether holds of an earlier run are there, which a removal releases; a move has ended them.

    `facts`: from before the run.
    """
    there = any(_is_held(name, facts) for name in recorded.packages)
    return recorded.held and there and not moved


def _is_held(name: str, facts: NodeFacts) -> bool:
    """apt holds names; yum 3 and dnf lock `epoch:name-version` and `name-epoch:version`."""
    package = facts.packages.get(name)
    if facts.package_manager == "apt" or package is None:
        return name in facts.holds
    epoch, version = f"0:{package.version}".split(":")[-2:]
    forms = {f"{epoch}:{name}-{version}", f"{name}-{epoch}:{version}", f"{name}-{version}"}
    return any(lock.rsplit(".", 1)[0] in forms or lock in forms for lock in facts.holds)


def parse_available(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Lines of `name version` -> versions by name."""
    found: dict[str, list[str]] = {}
    for line in lines:
        name, _, version = line.partition(" ")
        if version:
            found.setdefault(name, []).append(version)
    return {name: tuple(versions) for name, versions in found.items()}


def unexpected_changes(
    simulation: Iterable[str], plan: Transaction, family_patterns: Iterable[str]
) -> list[str]:
    """What `apt-get -s` would do in addition to `plan`: other removals, and new kernels."""
    patterns = [re.compile(pattern) for pattern in family_patterns]
    unexpected = []
    for line in simulation:
        verb, _, rest = line.partition(" ")
        name = rest.split(" ", 1)[0].split(":")[0]
        ours = name in plan.remove or any(pattern.fullmatch(name) for pattern in patterns)
        if verb == "Remv" and not ours:
            unexpected.append(name)
        if verb == "Inst" and NEW_KERNEL.fullmatch(name):
            unexpected.append(f"{name} (a new kernel)")
    return unexpected


def is_headers(name: str) -> bool:
    """Whether a package, by its name or its name and version, has the headers of a kernel."""
    return _HEADERS.fullmatch(name) is not None


def lacks(names: Sequence[str]) -> Finding:
    """Prerequisites that no repository has: the headers of the running kernel, or others."""
    headers = any(is_headers(name) for name in names)
    kind = findings.HEADERS_MISSING if headers else findings.PREREQUISITES_MISSING
    return kind(packages=", ".join(names))
