"""Adds package repositories after verifying their keys."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from pyinfra import host
from pyinfra.api import StringCommand

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
REPOSITORY_BEFORE = f"{HOME}/repository.before"  # old files while the new ones are tried


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
    keyring = fetch_keyring(repository, role, login)
    if isinstance(keyring, Finding):
        yield stop_command(host.name, keyring)
        return
    logins = [plan.login] if plan.login else []
    paths = [repository.file, repository.keyring, *(file.path for file in logins)]
    where = (repository.manager, repository.name, repository.url)
    spoilt = _spoilt(repository.file)
    yield from put_sources([keyring, plan.source, *logins], paths, *where, spoilt)


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
    url, spoilt = f"what {source.path} names", _spoilt(source.path)
    yield from put_sources([source], [source.path], "apt", "", url, spoilt)


def put_sources(
    files: Sequence[FileWrite], paths: Sequence[str], manager: str, name: str, url: str, spoilt: str
) -> Commands:
    """Put files of package sources in place, and restore those at `paths` if they cannot be read.

    `paths`: first the source that apt reads. `name`: the repositories that yum and dnf read.
    `spoilt`: the message if apt cannot read all sources together.
    """
    yield script_command("packages/keep_files", REPOSITORY_BEFORE, *paths)
    yield from put_files(files)
    message = explain_finding(host.name, findings.REPOSITORY_UNREADABLE(url=url))
    how = (*METADATA_ARGUMENTS, manager, message, spoilt, name, REPOSITORY_BEFORE)
    yield script_command("packages/try_repository", *how, *paths)


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


def fetch_keyring(repository: Repository, role: str, login: str = "") -> FileWrite | Finding:
    """The keyring of a repository, fetched by the host, or why its key is not trusted."""
    apt = repository.manager == "apt"
    place = (repository.manager, repository.key_url, repository.key_fingerprints)
    key = fetch_key(*place, f"{role}_repo", login, "" if apt else repository.file)
    if isinstance(key, Finding):
        return key
    return FileWrite(repository.keyring, key.binary if apt else key.armored)


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
            yield refresh_command("apt", [])
        return
    message = explain_finding(host.name, findings.REPOSITORY_UNREADABLE(url=repository.url))
    role = "toolkit" if "toolkit" in repository.name else "driver"
    signed_by_another = findings.WRONG_KEY(
        what=f"the metadata of {repository.url} is signed by another key than the one trusted here",
        expected=" or ".join(repository.key_fingerprints),
        setting=f"{role}_repo_key_fingerprint",
    )
    swapped = explain_finding(host.name, signed_by_another)
    yield refresh_command(manager, [repository], message, swapped)


def refresh_command(
    manager: str, known: Sequence[Repository], message: str = "", swapped: str = ""
) -> StringCommand:
    """The command that refreshes the package lists. Those of the `known` repositories must arrive.

    `message`, `swapped`: explanations if they do not, or if another key signs them.
    """
    how = (*METADATA_ARGUMENTS, message, swapped)
    if manager == "apt":
        return script_command("packages/refresh_apt", *how, *(each.file for each in known))
    return script_command("packages/refresh_rpm", *how, *(each.name for each in known))
