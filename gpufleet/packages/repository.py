"""Decides if a repository is configured on a host, and plans the missing parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpufleet.core.distributions import Distribution
from gpufleet.core.entries import PackageManager
from gpufleet.core.findings import Finding
from gpufleet.core.openpgp import UNKNOWN_KEY_ID
from gpufleet.core.render import render_template
from gpufleet.core.secrets import plain_urls
from gpufleet.facts.model import Keyring, ManagedFile, NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.packages import findings
from gpufleet.packages.apt_sources import (
    archive_place,
    conflicting_sources,
    other_lines,
    read_entries,
)
from gpufleet.packages.catalog import CudaRepository, RepositoryLayout
from gpufleet.packages.yum_files import other_sections, read_sections, users_settings

_RPM_KEY = "gpg-pubkey-"  # name of the rpm package of a key
SECRET, PUBLIC = 0o600, 0o644  # modes of files with and without a password
_OPTIONAL = ("driver", "toolkit")  # roles with a setting ROLE_enabled
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
    role: str = ""  # prefix of the settings of its mirror; "": its file is always gpufleet's
    chosen: bool = False  # the URL is the user's setting


def repository_at(
    url: str,
    key_url: str,
    fingerprints: Sequence[str | None],
    distribution: Distribution,
    layouts: Iterable[RepositoryLayout],
    *,
    role: str = "",
    chosen: bool = False,
    suite: str = "",
    **names: str,
) -> Repository:
    """The repository at a URL, as a package manager configures it.

    The distribution's code and `names` are filled into the layout.
    """
    layout = next(each for each in layouts if distribution.manager in each.managers)
    return Repository(
        name=layout.name.format(distribution=distribution.code, **names),
        manager=distribution.manager,
        url=url,
        key_url=key_url,
        key_fingerprints=tuple(filter(None, fingerprints)),
        file=layout.file.format(distribution=distribution.code, **names),
        keyring=layout.keyring,
        signed_packages=layout.signed_packages,
        signed_metadata=layout.signed_metadata,
        suite=suite,
        role=role,
        chosen=chosen,
    )


@dataclass(frozen=True, slots=True)
class RepositoryPlan:
    """One repository: its source file, its key, and if any of it is missing on the host."""

    repository: Repository | None
    source: FileWrite | None
    needed: bool  # the source file, the key or the login must be written
    findings: tuple[Finding, ...] = ()
    login: FileWrite | None = field(default=None, repr=False)  # for apt; else in `source`
    netrc: str = field(default="", repr=False)  # the login to fetch the key


NO_REPOSITORY = RepositoryPlan(None, None, needed=False)


def plan_repository(
    repository: Repository | None, facts: NodeFacts, *, wanted: bool
) -> RepositoryPlan:
    """Plan the parts of `repository` that the host lacks. `wanted`: this run installs from it."""
    if repository is None:
        return NO_REPOSITORY
    mirrors, others = _mirrors(repository, facts), _other_files(repository, facts)
    if not wanted and (mirrors or (others and repository.file not in facts.files)):
        return NO_REPOSITORY  # the user's entries stay as they are
    source = source_file(repository, facts)
    expected = repository.key_fingerprints
    right = source.is_on(facts) and key_is_trusted(repository.keyring, expected, facts)
    return RepositoryPlan(
        repository,
        source,
        needed=not right,
        findings=(
            *foreign_keys(repository.keyring, expected, facts),
            *mirrors,
            *(_conflicts(repository, facts) if wanted or not right else ()),
        ),
    )


def source_file(repository: Repository, facts: NodeFacts) -> FileWrite:
    """The source list (apt) or .repo file (yum, dnf, zypper) of a repository."""
    if repository.manager == "apt":
        machine = facts.kernel.architecture
        place = archive_place(repository.url, (repository.suite or "/").split()[0], machine)
        others = other_lines(facts.files.get(repository.file), place, repository.keyring, machine)
        ours = render_template("repository/apt.list", repository=repository)
        return FileWrite(repository.file, others + ours)
    kept = users_settings(facts.files.get(repository.file), repository.name)
    others = other_sections(facts.files.get(repository.file), repository.name)
    text = others + render_template("repository/rpm.repo", repository=repository) + kept
    mode = SECRET if "password" in others + kept else PUBLIC
    return FileWrite(repository.file, text, mode)


def key_is_trusted(path: str, expected: Sequence[str], facts: NodeFacts) -> bool:
    """True if the keyring at `path` has exactly one key, an expected one."""
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
    known = set(foreign) - {UNKNOWN_KEY_ID}
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
    """Findings about keys that NVIDIA revoked and that the host still trusts."""
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


def _mirrors(repository: Repository, facts: NodeFacts) -> tuple[Finding, ...]:
    """The finding about a file with our name that no run wrote, and that names another server.

    It is the user's mirror. A URL that the user sets replaces it.
    """
    if not repository.role or repository.chosen or repository.file in facts.provenance.files:
        return ()
    ours = _machine(repository.url)
    foreign = [url for url in urls_on(repository, facts) if _machine(url) != ours]
    if not foreign:
        return ()
    return (
        findings.USERS_MIRROR(
            file=repository.file,
            found=plain_urls(", ".join(foreign)),
            url=plain_urls(repository.url),
            setting=f"{repository.role}_repo_url",
        ),
    )


def urls_on(repository: Repository, facts: NodeFacts) -> list[str]:
    """The repository's URLs in its file on the host."""
    if repository.manager == "apt":
        return [entry.url for entry in read_entries(facts.files) if entry.path == repository.file]
    own = [each for each in read_sections(facts)[0] if each.path == repository.file]
    return [url for each in own if each.name == repository.name for url in each.urls]


def _machine(url: str) -> str:
    """HOST or HOST:PORT of a URL, or ""."""
    return "".join(url.split("/")[2:3]).rpartition("@")[2].lower()


def _other_files(repository: Repository, facts: NodeFacts) -> list[str]:
    """Files other than ours that configure this repository."""
    if repository.manager == "apt":
        machine = facts.kernel.architecture
        ours = archive_place(repository.url, (repository.suite or "/").split()[0], machine)
        entries = read_entries(facts.files)
        paths = [e.path for e in entries if archive_place(e.url, e.suite, machine) == ours]
    else:
        sections = read_sections(facts)[0]
        paths = [s.path for s in sections if s.enabled and s.name == repository.name]
    return [path for path in dict.fromkeys(paths) if path != repository.file]


def _conflicts(repository: Repository, facts: NodeFacts) -> tuple[Finding, ...]:
    """Repositories that the package manager would reject, or read from another file than ours."""
    source = source_file(repository, facts)
    if repository.manager == "apt":
        files = {**facts.files, source.path: ManagedFile(source.path, str(source.content))}
        found = conflicting_sources(read_entries(files), facts.kernel.architecture)
    else:
        others = _other_files(repository, facts)
        found = {f"[{repository.name}]": [*others, repository.file]} if others else {}
    return tuple(_conflict(repository, place, paths, facts) for place, paths in found.items())


def _conflict(
    repository: Repository, place: str, paths: Sequence[str], facts: NodeFacts
) -> Finding:
    """The finding about files that configure one repository differently."""
    place = plain_urls(place)
    users = [path for path in paths if path != repository.file or path in facts.files]
    if len(users) == len(paths):
        files = f"{', '.join(users)} configure the same repository, {place}, with different options"
        entries = "all but one of them"
    else:
        files = (
            f"gpufleet adds {place} in {repository.file}, and the host has it with other options "
            f"in {', '.join(users)}"
        )
        entries = f"the one in {' and '.join(users)}"
        if repository.role in _OPTIONAL:
            entries += f", or set {repository.role}_enabled = False for this host"
    effect = f"{repository.manager} uses at most one of them"
    if repository.manager == "apt":
        effect = "While both are there, apt reads no source at all"
    return findings.CONFLICTING_REPOSITORY(files=files, effect=effect, entries=entries)
