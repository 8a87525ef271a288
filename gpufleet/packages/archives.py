"""Discontinued repositories of a host, and the archives that replace them.

CentOS 7's base repositories and EPEL 7 moved at their end of life. The files of a stock host still
name the old servers, and yum fails if any repository does. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpufleet.core.distributions import ExtraRepository
from gpufleet.core.findings import Finding
from gpufleet.core.render import render_template
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.host.settings import HostSettings
from gpufleet.packages import findings
from gpufleet.packages.catalog import PackageCatalog
from gpufleet.packages.logins import NO_LOGINS, Logins, netrc_line, rpm_lines
from gpufleet.packages.repository import SECRET, foreign_keys, key_is_trusted
from gpufleet.packages.yum_files import YUM_FOLDER, Section, read_sections, switch_off, switched_off

ARCHIVE_SECTION_PREFIX = "gpufleet-archive-"  # prefix of the section names
ARCHIVES_FILE = f"{YUM_FOLDER}gpufleet-archives.repo"
WHY = "its server is gone; the archive is in gpufleet-archives.repo."


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A key to fetch, and to trust if its fingerprint matches."""

    url: str
    path: str  # on the host
    fingerprints: tuple[str, ...]
    netrc: str = field(default="", repr=False)  # the login to fetch it


@dataclass(frozen=True, slots=True)
class ArchivesPlan:
    """The plan for discontinued repositories. Empty if there is nothing to do."""

    files: tuple[FileWrite, ...] = ()  # the user's, with dead sections disabled; and gpufleet's
    keys: tuple[TrustedKey, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def needed(self) -> bool:
        return bool(self.files or self.keys)


NO_ARCHIVES = ArchivesPlan()


@dataclass(frozen=True, slots=True)
class _Seen:
    """The host's repositories, by their state in the catalog."""

    dead: tuple[Section, ...]
    alive: tuple[Section, ...]
    unclear: bool  # the facts may lack some repositories


def plan_archives(
    settings: HostSettings,
    facts: NodeFacts,
    catalog: PackageCatalog,
    lacking: Sequence[str] | None,
    logins: Logins = NO_LOGINS,
) -> ArchivesPlan:
    """Plan the repositories of one host.

    `lacking`: missing prerequisites of the packages to install, or None if nothing is installed.
    """
    distribution = facts.distribution
    archives = [a for a in distribution.extra_repositories if a.path] if distribution else []
    if not distribution or not archives or facts.package_manager not in ("yum", "dnf"):
        return ArchivesPlan()
    seen = _look(facts, archives, distribution.subscriptions)
    lacked = [a for a in archives if _lacks(a, seen, lacking or ())]
    if not settings.archives:
        return ArchivesPlan(findings=_blockers(facts, seen, lacked, lacking))
    wanted = [a for a in archives if _wanted(a, facts, seen, lacked)]
    return _switch(settings, facts, seen, wanted, logins)


def _look(
    facts: NodeFacts, archives: Sequence[ExtraRepository], subscriptions: Sequence[str]
) -> _Seen:
    sections, unreadable = read_sections(facts)
    gone = [re.compile(pattern) for archive in archives for pattern in archive.gone]
    enabled = [section for section in sections if section.enabled]
    dead = tuple(
        section
        for section in enabled
        if section.urls and all(any(p.search(url) for p in gone) for url in section.urls)
    )
    alive = tuple(section for section in enabled if section not in dead)
    # a subscription's repositories are in a separate file, which is not read
    return _Seen(dead, alive, bool(unreadable) or facts.os.id in subscriptions)


def _lacks(archive: ExtraRepository, seen: _Seen, lacking: Sequence[str]) -> bool:
    """True if the host needs a package that only this repository has, and lacks the repository."""
    words = [section.name + " ".join(section.urls) for section in seen.alive]
    known = any(name in word.lower() for name in archive.replaces for word in words)
    return not known and any(name in lacking for name in archive.provides)


def _blockers(
    facts: NodeFacts, seen: _Seen, lacked: Sequence[ExtraRepository], lacking: Sequence[str] | None
) -> tuple[Finding, ...]:
    found = []
    if seen.dead and lacking is not None:
        dead = ", ".join(f"{section.name} ({section.path})" for section in seen.dead)
        found.append(findings.REPOSITORIES_GONE(manager=facts.package_manager, sections=dead))
    # the user's own repository may have it: the trial of the transaction will show that
    users_own = any("nvidia" not in " ".join(section.urls).lower() for section in seen.alive)
    if lacked and seen.dead and not seen.unclear and not users_own:
        names = [name for archive in lacked for name in archive.provides]
        found.append(findings.PREREQUISITES_MISSING(packages=", ".join(names)))
    return tuple(found)


def _wanted(
    archive: ExtraRepository, facts: NodeFacts, seen: _Seen, lacked: Sequence[ExtraRepository]
) -> bool:
    """True if the host needs this archive for a dead section or a package, or already used it."""
    before = f"[{ARCHIVE_SECTION_PREFIX}{archive.name}]" in facts.texts.get(ARCHIVES_FILE, "")
    dead = {section.name for section in seen.dead} | set(switched_off(facts))
    return before or archive in lacked or bool(dead & set(archive.replaces))


def _switch(
    settings: HostSettings,
    facts: NodeFacts,
    seen: _Seen,
    archives: Sequence[ExtraRepository],
    logins: Logins,
) -> ArchivesPlan:
    placed = [_placed(archive, settings) for archive in archives]
    files = []
    for path in sorted({section.path for section in seen.dead}):
        names = {section.name for section in seen.dead if section.path == path}
        text = facts.files[path].content or ""
        files.append(FileWrite(path, switch_off(text, names, WHY)))
    if placed:
        files.append(_own_file(placed, logins))
    keys = []
    for archive in placed:
        if archive.key_url:
            login = logins.find(archive.key_url)
            netrc = netrc_line(archive.key_url, login) if login else ""
            keys.append(TrustedKey(archive.key_url, archive.key, archive.fingerprints, netrc))
    found = [f for key in keys for f in foreign_keys(key.path, key.fingerprints, facts)]
    off = [*(section.name for section in seen.dead), *switched_off(facts)]
    if placed or off:
        used = ", ".join(archive.name for archive in placed) or "none"
        found.append(findings.ARCHIVES_USED(archives=used, sections=", ".join(off) or "none"))
    return ArchivesPlan(
        files=tuple(file for file in files if not file.is_on(facts)),
        keys=tuple(k for k in keys if not key_is_trusted(k.path, k.fingerprints, facts)),
        findings=tuple(found),
    )


def _own_file(placed: Sequence[ExtraRepository], logins: Logins) -> FileWrite:
    found = {archive.name: logins.find(archive.url) for archive in placed}
    lines = {name: rpm_lines(login) for name, login in found.items() if login}
    text = render_template(
        "repository/archives.repo", archives=placed, prefix=ARCHIVE_SECTION_PREFIX, logins=lines
    )
    return FileWrite(ARCHIVES_FILE, text, SECRET) if lines else FileWrite(ARCHIVES_FILE, text)


def _placed(archive: ExtraRepository, settings: HostSettings) -> ExtraRepository:
    """The archive with its URL for the host: its own address, or the user's mirror."""
    if settings.archives_url is None:
        return archive
    own = settings.archives_key_fingerprint
    return archive.model_copy(
        update={
            "url": f"{settings.archives_url}/{archive.path}",
            "key_url": archive.key_path and f"{settings.archives_url}/{archive.key_path}",
            "fingerprints": (own,) if own else archive.fingerprints,
        }
    )
