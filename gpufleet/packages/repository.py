"""Whether a repository is configured on a host, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpufleet.core.entries import PackageManager
from gpufleet.core.findings import Finding
from gpufleet.core.openpgp import UNKNOWN
from gpufleet.core.redact import redact
from gpufleet.core.render import render
from gpufleet.facts.model import Keyring, ManagedFile, NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.packages import findings
from gpufleet.packages.apt_sources import conflicting, read_entries
from gpufleet.packages.models import CudaRepository
from gpufleet.packages.yum_files import read_sections, users_settings

_RPM_KEY = "gpg-pubkey-"  # rpm's package of a key
SECRET, PUBLIC = 0o600, 0o644  # modes of files with and without a password
_SHORT = 8  # digits of a short fingerprint in some facts


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
    suite: str = ""  # apt: suite and components; "": the repository is flat


@dataclass(frozen=True, slots=True)
class RepositoryPlan:
    """One repository: its source file, its key, and whether the host lacks any of it."""

    repository: Repository | None
    source: FileWrite | None
    needed: bool  # the source file, the key or the login must be written
    findings: tuple[Finding, ...] = ()
    login: FileWrite | None = field(default=None, repr=False)  # for apt; others have it in `source`
    netrc: str = field(default="", repr=False)  # the login to fetch the key


def plan_repository(
    repository: Repository | None, facts: NodeFacts, *, wanted: bool
) -> RepositoryPlan:
    """What the host lacks of `repository`; `wanted`: this run installs packages from it."""
    if repository is None:
        return RepositoryPlan(None, None, needed=False)
    source = source_file(repository, facts)
    expected = repository.key_fingerprints
    right = source.is_on(facts) and key_is_trusted(repository.keyring, expected, facts)
    return RepositoryPlan(
        repository,
        source,
        needed=not right,
        findings=(
            *foreign_keys(repository.keyring, expected, facts),
            *(_conflicts(repository, facts) if wanted or not right else ()),
        ),
    )


def source_file(repository: Repository, facts: NodeFacts) -> FileWrite:
    """The source list (apt) or .repo file (yum, dnf, zypper) of a repository."""
    if repository.manager == "apt":
        return FileWrite(repository.file, render("repository/apt.list", repository=repository))
    kept = users_settings(facts.files.get(repository.file), repository.name)
    text = render("repository/rpm.repo", repository=repository) + kept
    mode = SECRET if "password" in kept else PUBLIC
    return FileWrite(repository.file, text, mode)


def key_is_trusted(path: str, expected: Sequence[str], facts: NodeFacts) -> bool:
    """Whether the keyring at `path` has exactly one key, which is expected."""
    return any(
        keyring.path == path
        and len(keyring.fingerprints) == 1
        and keyring.fingerprints[0] in expected
        for keyring in facts.keyrings
    )


def foreign_keys(path: str, expected: Sequence[str], facts: NodeFacts) -> tuple[Finding, ...]:
    """Findings about unexpected keys in our keyring at `path`."""
    found = [f for keyring in facts.keyrings if keyring.path == path for f in keyring.fingerprints]
    foreign = [fingerprint for fingerprint in found if fingerprint not in expected]
    if not foreign:
        return ()
    shown, wanted = ", ".join(foreign), " or ".join(expected)
    if len(foreign) == len(found):
        return (findings.KEY_REPLACED(keyring=path, found=shown, expected=wanted),)
    known = set(foreign) - {UNKNOWN}
    packages = [
        keyring.path
        for keyring in facts.keyrings
        if keyring.path.startswith(_RPM_KEY) and known & set(keyring.fingerprints)
    ]
    commands = [_removal(place) for place in (path, *packages)]
    return (
        findings.FOREIGN_KEY(
            keyring=path,
            foreign=shown,
            expected=", ".join(f for f in found if f in expected),
            where=" and ".join([path, *packages]),
            commands="; ".join(commands),
        ),
    )


def revoked_keys(known: CudaRepository, facts: NodeFacts) -> list[Finding]:
    """Findings about keys that NVIDIA revoked and the host still trusts."""
    revoked = [fingerprint for key in known.revoked for fingerprint in key.fingerprints]
    return [
        findings.REVOKED_KEY(key=wrong, where=keyring.path, command=_removal_of_one(keyring, wrong))
        for keyring in facts.keyrings
        for wrong in revoked
        if any(len(f) >= _SHORT and wrong.endswith(f) for f in keyring.fingerprints)
    ]


def _removal(place: str) -> str:
    """The command that removes a whole keyring."""
    return f"rpm -e {place}" if place.startswith(_RPM_KEY) else f"rm {place}"


def _removal_of_one(keyring: Keyring, fingerprint: str) -> str:
    """The command that removes one key from a keyring."""
    if keyring.path.startswith(_RPM_KEY) or len(keyring.fingerprints) == 1:
        return _removal(keyring.path)
    ring = f"gpg --no-default-keyring --keyring {keyring.path}"
    return f"{ring} --batch --yes --delete-keys {fingerprint}"


def _conflicts(repository: Repository, facts: NodeFacts) -> tuple[Finding, ...]:
    """Repositories that the package manager would reject, or take from another file than ours."""
    source = source_file(repository, facts)
    if repository.manager == "apt":
        files = {**facts.files, source.path: ManagedFile(source.path, str(source.content))}
        entries = read_entries(files)
        found = conflicting(entries, facts.kernel.architecture)
    else:
        paths = [s.path for s in read_sections(facts)[0] if s.name == repository.name]
        others = [path for path in dict.fromkeys(paths) if path != repository.file]
        found = {f"[{repository.name}]": [*others, repository.file]} if others else {}
    return tuple(
        findings.CONFLICTING_REPOSITORY(
            files=", ".join(paths), url=redact(place), manager=repository.manager
        )
        for place, paths in found.items()
    )
