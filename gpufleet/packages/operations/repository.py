"""Adds package repositories after verifying their keys."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from pyinfra import host

from gpufleet.core import limits
from gpufleet.core.entries import PackageManager
from gpufleet.core.findings import Finding
from gpufleet.core.openpgp import Certificate, OpenPgpError, keyring_fingerprints, parse_certificate
from gpufleet.facts.files import HOME, INCOMING
from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.host.files import put_files, run_stamp, show_diff
from gpufleet.host.operation import Commands, host_operation
from gpufleet.host.reading import read_fact
from gpufleet.host.shell import (
    explain_finding,
    quote_command,
    script_command,
    stop_command,
    upload_command,
)
from gpufleet.packages import findings
from gpufleet.packages.operations.locks import wait_for_lock
from gpufleet.packages.operations.reading import Fetched, NotStored
from gpufleet.packages.repository import Repository, RepositoryPlan

METADATA_ARGUMENTS = (str(limits.METADATA_LIMIT.bytes), str(limits.METADATA_LIMIT.seconds))
REPOSITORY_BEFORE = (
    f"{HOME}/repository.before"  # a repository's old files while the new ones are tried
)


@host_operation
def trust_repository(plan: RepositoryPlan, role: str, lock_timeout: int) -> Commands:
    """
    Add a repository to the host if its key matches the catalog's fingerprint.

    A repository that cannot be read is removed again, because it would break every later update.

    + plan: the repository and its missing files on the host
    + role: prefix of the settings of its mirror and key: driver or toolkit
    + lock_timeout: seconds to wait for another package manager
    """
    repository = plan.repository
    if repository is None or plan.source is None or not plan.needed:
        host.noop("the repository is configured")
        return
    yield wait_for_lock(lock_timeout)
    login = yield from send_login(plan.netrc)
    file = "" if repository.manager == "apt" else repository.file
    key = fetch_key(
        repository.manager,
        repository.key_url,
        repository.key_fingerprints,
        f"{role}_repo",
        login,
        file,
    )
    if isinstance(key, Finding):
        yield stop_command(host.name, key)
        return
    trusted = key.binary if repository.manager == "apt" else key.armored
    written = [FileWrite(repository.keyring, trusted), plan.source]
    written += [plan.login] if plan.login else []
    files = (repository.file, repository.keyring, *(file.path for file in written[2:]))
    yield script_command("packages/keep_files", REPOSITORY_BEFORE, *files)
    yield from put_files(written)
    message = explain_finding(host.name, findings.REPOSITORY_UNREADABLE(url=repository.url))
    yield script_command(
        "packages/try_repository",
        *METADATA_ARGUMENTS,
        repository.manager,
        message,
        _spoilt(repository.file),
        repository.name,
        REPOSITORY_BEFORE,
        *files,
    )


@host_operation
def open_components(facts: NodeFacts, source: FileWrite | None, lock_timeout: int) -> Commands:
    """
    Enable more of the distribution's own archive. Revert if apt cannot read it.

    + facts: of the host, for the output of --diff
    + source: the missing source file; None means no change
    + lock_timeout: seconds to wait for another package manager
    """
    if source is None:
        host.noop("the distribution's archive is enabled")
        return
    show_diff(facts, [source])
    yield wait_for_lock(lock_timeout)
    yield script_command("packages/keep_files", REPOSITORY_BEFORE, source.path)
    yield from put_files([source])
    message = explain_finding(
        host.name, findings.REPOSITORY_UNREADABLE(url=f"what {source.path} names")
    )
    spoilt = _spoilt(source.path)
    yield script_command(
        "packages/try_repository",
        *METADATA_ARGUMENTS,
        "apt",
        message,
        spoilt,
        "",
        REPOSITORY_BEFORE,
        source.path,
    )


def _spoilt(path: str) -> str:
    """The message about a source file that prevents apt from reading its sources."""
    when = f" together with {path}, which is removed or as it was before"
    return explain_finding(host.name, sources_unreadable("apt", "its output follows.", when))


def sources_unreadable(manager: PackageManager, problem: str, when: str = "") -> Finding:
    """The finding that the package manager cannot read its sources, in its own words."""
    command = "apt-get indextargets" if manager == "apt" else f"{manager} repolist"
    return findings.SOURCES_UNREADABLE(manager=manager, when=when, problem=problem, command=command)


def send_login(netrc: str) -> Generator[Any, None, str]:
    """Send a login to the host. Returns its path there, or ""."""
    if not netrc:
        return ""
    path = f"{INCOMING}/{run_stamp()}.netrc"
    yield quote_command("install", "-d", "-m", "700", HOME, INCOMING)
    yield upload_command(netrc.encode(), path)
    return path


def fetch_key(
    manager: PackageManager,
    url: str,
    expected: Sequence[str],
    settings: str,
    login: str = "",
    source: str = "",
) -> Certificate | Finding:
    """The key at `url`, fetched by the host, or why it is not trusted.

    A file with the expected key and anything else is rejected. `settings`: prefix of the settings
    of a mirror and its key's fingerprint. `login`: see `send_login`. `source`: see `Fetched`.
    """
    key = read_fact(Fetched, manager, url, login, source)
    if isinstance(key, NotStored):
        return findings.KEY_NOT_KEPT(url=url, problem=key)
    if isinstance(key, str) or not key:
        problem = str(key) if key else "the file is empty"
        return findings.KEY_UNREACHABLE(url=url, problem=problem, setting=f"{settings}_url")
    try:
        found = parse_certificate(key)
    except OpenPgpError as error:  # for example a mirror's error page, or a second key
        shown = f"{', '.join(keyring_fingerprints(key)) or 'none'} ({error})"
    else:
        if found.fingerprint in expected:
            return found
        shown = found.fingerprint
    return findings.WRONG_KEY(
        what=f"the key at {url} has the fingerprint {shown}",
        expected=" or ".join(expected),
        setting=f"{settings}_key_fingerprint",
    )


def refresh_lists(plan: RepositoryPlan, manager: str) -> Commands:
    """Refresh the package lists. The repository's own list must arrive.

    A repository that `trust_repository` has just added needs no second refresh.
    """
    repository = plan.repository
    if repository is None or plan.needed:
        if manager == "apt":
            yield script_command("packages/refresh_apt", *METADATA_ARGUMENTS, "", "")
        return
    message = explain_finding(host.name, findings.REPOSITORY_UNREADABLE(url=repository.url))
    swapped = explain_finding(host.name, _signed_by_another(repository))
    if manager == "apt":
        yield script_command(
            "packages/refresh_apt", *METADATA_ARGUMENTS, message, swapped, repository.file
        )
    else:
        yield script_command(
            "packages/refresh_rpm", *METADATA_ARGUMENTS, message, swapped, repository.name
        )


def _signed_by_another(repository: Repository) -> Finding:
    """The finding that a trusted repository is now signed with another key."""
    role = "toolkit" if "toolkit" in repository.name else "driver"
    return findings.WRONG_KEY(
        what=f"the metadata of {repository.url} is signed by another key than the one trusted here",
        expected=" or ".join(repository.key_fingerprints),
        setting=f"{role}_repo_key_fingerprint",
    )
