"""The packages that a role installs together: requested by a plan, resolved by repositories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rich.filesize import decimal

from gpufleet.core.entries import PackageManager
from gpufleet.core.findings import Finding
from gpufleet.core.names import count_noun
from gpufleet.core.render import render_template
from gpufleet.core.versions import upstream_version, version_order
from gpufleet.facts.files import HOME
from gpufleet.facts.model import NodeFacts
from gpufleet.facts.record import AnyEntry, RoleEntry
from gpufleet.host.file_write import FileWrite
from gpufleet.packages import findings
from gpufleet.packages.repository import NO_REPOSITORY, RepositoryPlan

ASKED_LATER = " (the repository is asked in the run)"  # only plan --check asks before the run
Available = Mapping[str, tuple[str, ...]]  # name -> versions as the package manager writes them
SHOWN_VERSIONS = 8
_HEADERS = re.compile(r"(linux|pve|proxmox)-headers-.+|kernel[\w.-]*-devel.*")


@dataclass(frozen=True, slots=True)
class PackageTransaction:
    """Packages that must have the same version, and the packages that go with them.

    A plan fills in the request; `resolve_transaction` adds versions from repositories.
    """

    role: str
    title: str  # for messages: "driver"
    packages: tuple[str, ...]
    facts: NodeFacts = field(repr=False)
    version: str | None = None  # without epoch and revision; None: the newest of `branch`
    branch: str = ""  # prefix of the version, such as 580; "" accepts any
    revision: str = ""  # regular expression of the text after the version in the wanted source
    lowest: str = ""  # a lower version would be an unrequested downgrade; "": any
    needed: bool = True  # False if the host has all of it at the right version
    installed: tuple[str, ...] = ()  # installed packages of the same kind
    prerequisites: tuple[str, ...] = ()  # at any version, installed before
    companions: tuple[str, ...] = ()  # in the same transaction, with independent versions
    conflicting: tuple[str, ...] = ()  # to be removed, even at the right version
    patterns: tuple[str, ...] = ()  # regular expressions of packages that may be removed
    repository: RepositoryPlan = NO_REPOSITORY
    pin_file: str = ""  # apt preferences that pin the packages to the version; "": none
    reports: bool = True  # its version is the role's in the report
    makes: tuple[tuple[str, str], ...] = ()  # files that packages create: path, sha256 before
    lock_timeout: int = 300  # node_lock_timeout, in seconds
    # resolved:
    install: tuple[tuple[str, str], ...] = ()  # name, version as the package manager writes it
    remove: tuple[str, ...] = ()
    added: tuple[str, ...] = ()  # packages that yum or dnf would newly install
    moved: tuple[str, ...] = ()  # every package that is installed, or gets another version
    download: int | None = None  # bytes to download; None: not asked

    @property
    def manager(self) -> PackageManager:
        manager = self.facts.package_manager
        assert manager, "a host without a package manager is blocked by preflight"
        return manager

    @property
    def names(self) -> tuple[str, ...]:
        """Packages that are installed or change their version."""
        return tuple(name for name, _ in self.install)

    @property
    def record(self) -> str:
        """File on the host that lists the packages from before the transaction."""
        return f"{HOME}/{self.role}.before"

    @property
    def ours(self) -> str:
        """File on the host that lists the packages that its transactions installed."""
        return f"{self.record}.ours"

    def accepts(self, version: str) -> bool:
        """True if a version without epoch and revision is a requested one."""
        if self.version is not None:
            return version == self.version
        return not self.branch or version == self.branch or version.startswith(f"{self.branch}.")

    def may_remove(self, name: str) -> bool:
        """True if a package belongs to the transaction or matches one of the patterns."""
        return name in self.remove or any(re.fullmatch(text, name) for text in self.patterns)

    def pins(self, version: str | None) -> tuple[FileWrite, ...]:
        """The file that pins the packages to a version even if they are not held. apt stops at a
        pin without packages."""
        names = sorted(self.packages)
        if not self.pin_file or not version or not names:
            return ()
        text = render_template(
            "repository/apt-preferences", title=self.title, packages=names, version=version
        )
        return (FileWrite(self.pin_file, text),)

    def versions(self, resolved: PackageTransaction | None, old: RoleEntry) -> dict[str, str]:
        """Package -> version after the run: installed by `resolved`, else the host's. Includes
        packages in `old`: a transaction also moves packages of the same kind that no plan names."""
        if resolved:
            return dict(resolved.install)
        there = self.facts.packages
        known = dict.fromkeys((*self.packages, *old.packages))
        return {name: there[name].version for name in known if name in there}


def resolve_transaction(
    asked: PackageTransaction, available: Available
) -> PackageTransaction | Finding:
    """The newest matching version that *every* package has, or why it does not exist."""
    first = asked.packages[0]
    fitting = [
        set(filter(asked.accepts, map(upstream_version, available.get(name, ()))))
        for name in asked.packages
    ]
    common = set.intersection(*fitting)
    if not common:
        lacking = next(
            (name for name, versions in zip(asked.packages, fitting, strict=True) if not versions),
            first,
        )
        return findings.VERSION_NOT_THERE(
            what=f"{asked.title} {asked.version or asked.branch}".strip(),
            package=lacking,
            available=_listed(available.get(lacking, ())),
        )
    version = max(common, key=version_order)
    if version_order(version) < version_order(asked.lowest):
        return findings.VERSION_NOT_THERE(
            what=f"{asked.title} {asked.lowest} or newer, and an older one has to be requested",
            package=first,
            available=_listed(common),
        )

    def packaged(name: str) -> str:
        """The newest packaging of that version, by the wanted source if it has one, or ""."""
        items = [item for item in available.get(name, ()) if upstream_version(item) == version]
        pattern = asked.revision or ".*"
        own = [item for item in items if re.fullmatch(pattern, item.rpartition("-")[2])]
        return max(own or items, key=version_order, default="")

    others = (name for name in asked.installed if name not in asked.packages)
    kept = [name for name in others if name not in asked.conflicting and packaged(name)]
    names = (*asked.packages, *kept)
    return replace(
        asked,
        version=version,
        install=tuple((name, packaged(name)) for name in names),
        remove=tuple(name for name in asked.installed if name not in (*names, *asked.companions)),
    )


def repository_answer(asked: PackageTransaction) -> str:
    """A clause such as ", 12 packages, 352.0 MB to download". If the repositories were not asked:
    that the run asks them."""
    if asked.download is None:
        return ASKED_LATER
    return f", {count_noun(len(asked.moved), 'package')}, {decimal(asked.download)} to download"


def _listed(versions: Iterable[str]) -> str:
    plain = {upstream_version(version) for version in versions}
    newest_first = sorted(plain, key=version_order, reverse=True)
    shown = ", ".join(newest_first[:SHOWN_VERSIONS]) or "none"
    return shown + (", …" if len(newest_first) > SHOWN_VERSIONS else "")


def install_words(resolved: PackageTransaction) -> list[str]:
    """The command that runs it with apt. With yum and dnf: only its prerequisites."""
    if resolved.manager == "apt":
        wanted = [f"{name}={version}" for name, version in resolved.install]
        gone = [f"{name}-" for name in resolved.remove]
        return [
            "apt-get", "-y", "-q", "--fix-broken", "--no-install-recommends", "--allow-downgrades",
            "--allow-change-held-packages",
            "-o", f"DPkg::Lock::Timeout={resolved.lock_timeout}",
            "-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold",
            "install", *wanted, *resolved.companions, *resolved.prerequisites, *gone,
        ]  # fmt: skip
    # the packages of the next transaction are downloaded, and must not be removed here
    keep = "--setopt=keepcache=1"
    return [resolved.manager, "-y", keep, "install", *resolved.prerequisites]


def rpm_words(resolved: PackageTransaction) -> list[str]:
    """Arguments of scripts/rpm_transaction.sh: -NAME removes, NAME=VERSION installs."""
    gone = [f"-{name}" for name in resolved.remove]
    wanted = [f"{name}={version}" for name, version in resolved.install]
    return [*gone, *wanted, *resolved.companions]


def with_added(entry: AnyEntry, names: Iterable[str]) -> AnyEntry:
    """The entry of a record, with packages added that gpufleet installed."""
    return entry.model_copy(update={"added": sorted({*entry.added, *names})})


def is_headers(name: str) -> bool:
    """True if a package, by its name or its name and version, has the headers of a kernel."""
    return _HEADERS.fullmatch(name) is not None


def missing_prerequisites(names: Sequence[str]) -> Finding:
    """The finding about prerequisites that no repository has: kernel headers, or other packages."""
    headers = any(is_headers(name) for name in names)
    kind = findings.HEADERS_MISSING if headers else findings.PREREQUISITES_MISSING
    return kind(packages=", ".join(names))
