"""Whether a repository is known to a host, and what would make it known."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpufleet.catalog.choice import Repository
from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.findings import Finding
from gpufleet.findings import packages as findings
from gpufleet.plan.files import FileWrite
from gpufleet.plan.render import render

APT_ENTRY = re.compile(r"^\s*deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<url>\S+)\s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RepositoryPlan:
    """One repository: its source file, its key, and whether the host lacks any of it."""

    repository: Repository | None
    source: FileWrite | None
    needed: bool  # the source file or the key has to be written
    findings: tuple[Finding, ...] = ()


def plan_repository(
    repository: Repository | None, facts: NodeFacts, *, wanted: bool
) -> RepositoryPlan:
    """What the host lacks of `repository`; `wanted`: packages will be fetched from it now."""
    if repository is None:
        return RepositoryPlan(None, None, needed=False)
    source = source_file(repository)
    conflicts = _conflicts(repository, facts)
    right = source.is_on(facts) and _key_is_trusted(repository, facts)
    return RepositoryPlan(
        repository,
        source,
        needed=not right,
        findings=_findings(repository, conflicts) if wanted or not right else (),
    )


def source_file(repository: Repository) -> FileWrite:
    """The source list (apt) or .repo file (yum, dnf, zypper) of a repository."""
    template = "repository/apt.list" if repository.manager == "apt" else "repository/rpm.repo"
    return FileWrite(repository.file, render(template, repository=repository))


def _key_is_trusted(repository: Repository, facts: NodeFacts) -> bool:
    """Whether the keyring holds exactly one key, and that one is expected."""
    return any(
        keyring.path == repository.keyring
        and len(keyring.fingerprints) == 1
        and keyring.fingerprints[0] in repository.key_fingerprints
        for keyring in facts.keyrings
    )


def _conflicts(repository: Repository, facts: NodeFacts) -> list[str]:
    """Other apt source files that name the same URL with another signed-by, or none."""
    if repository.manager != "apt":
        return []
    return [
        file.path
        for file in facts.files.values()
        if file.path != repository.file and _names_otherwise(repository, file)
    ]


def _names_otherwise(repository: Repository, file: ManagedFile) -> bool:
    if not file.path.startswith("/etc/apt/sources.list") or not file.content:
        return False
    for entry in APT_ENTRY.finditer(file.content):
        same_url = entry["url"].rstrip("/") == repository.url.rstrip("/")
        if same_url and f"signed-by={repository.keyring}" not in (entry["options"] or ""):
            return True
    if file.path.endswith(".sources"):
        return repository.url.rstrip("/") in file.content and repository.keyring not in file.content
    return False


def _findings(repository: Repository, conflicts: list[str]) -> tuple[Finding, ...]:
    if not conflicts:
        return ()
    files = ", ".join([*conflicts, repository.file])
    return (findings.CONFLICTING_REPOSITORY(files=files, url=repository.url),)
