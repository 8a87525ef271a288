"""Asks a host's repositories which packages a plan would install.

The host does not change: the package manager uses a copy of its configuration and lists, in a
separate mount namespace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, TypeVar

from pyinfra import host
from pyinfra.api import FactBase, QuoteString, StringCommand

from gpufleet.core.causes import find_cause
from gpufleet.core.entries import PackageManager
from gpufleet.core.findings import Finding
from gpufleet.core.quoting import quote_last_line
from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import BAR
from gpufleet.host.asking import frame_command, framed_answer, host_arguments
from gpufleet.host.file_write import FileWrite
from gpufleet.host.reading import FactReader, read_fact
from gpufleet.host.shell import as_lines, quote_command, script_command
from gpufleet.host.sudo import run_on_host
from gpufleet.packages import findings
from gpufleet.packages.operations.fitting import fit_transaction
from gpufleet.packages.operations.repository import fetch_keyring, refresh_command
from gpufleet.packages.repository import RepositoryPlan
from gpufleet.packages.transaction import PackageTransaction, install_words
from gpufleet.packages.trial import apt_download

T = TypeVar("T")
COPIED_FOLDERS = {  # folders to copy
    "apt": ("/etc/apt", "/usr/share/keyrings", "/var/lib/apt/lists"),
    "yum": ("/etc/yum.repos.d", "/etc/pki/rpm-gpg"),
    "dnf": ("/etc/yum.repos.d", "/etc/pki/rpm-gpg"),
}


class Uris(FactBase[int]):
    """Bytes that apt has to download for a transaction."""

    def command(self, words: tuple[str, ...]) -> StringCommand:
        return frame_command(quote_command(words[0], "--print-uris", *words[1:]))

    def process(self, output: Iterable[str]) -> int:
        return apt_download(framed_answer(output) or ())


def look_up(
    asked: Sequence[PackageTransaction], sources: Iterable[FileWrite]
) -> list[PackageTransaction]:
    """The transactions with the versions in the host's repositories, in the order of `asked`.

    `sources`: files of package sources that the plan writes. Raises Stopped with the findings that
    would stop the run, or with NOT_ASKED if the host cannot be asked.
    """
    with refreshed_copy(asked, sources) as ask:
        return [_looked_up(each, ask) for each in asked]


@contextmanager
def refreshed_copy(
    asked: Sequence[PackageTransaction], sources: Iterable[FileWrite]
) -> Iterator[CopyReader]:
    """A reader of facts in a copy of the host's sources, with fresh lists and with the repositories
    of these transactions. The copy is removed afterwards. Raises Stopped, as `look_up`."""
    manager = asked[0].manager
    with copied_sources(manager) as copy:
        for file in sources:
            if file.path.startswith(COPIED_FOLDERS[manager]):
                _put(copy, file)
        repositories = {each.repository.repository: each for each in asked}
        for each in repositories.values():
            _add(copy, each.repository, each.role)
        _refresh(copy, manager, [each.repository for each in repositories.values()])
        yield CopyReader(copy)


@dataclass(frozen=True, slots=True)
class CopyReader:
    """Reads facts in a copy. `folder`: its path on the host."""

    folder: str

    def __call__(self, fact: type[FactBase[T]], *args: Any) -> T:
        return read_fact(fact, *args, within=lambda inner: in_copy(self.folder, inner))


def _looked_up(asked: PackageTransaction, ask: FactReader) -> PackageTransaction:
    found = fit_transaction(asked, ask)
    if isinstance(found, Finding):
        raise Stopped(found)
    if found.manager == "apt":
        found = replace(found, download=ask(Uris, tuple(install_words(found))))
    return found


@contextmanager
def copied_sources(manager: PackageManager) -> Iterator[str]:
    """The path of a copy on the host, which is removed afterwards."""
    ok, lines = _run(frame_command(script_command("packages/make_copy", *COPIED_FOLDERS[manager])))
    made = framed_answer(lines) if ok else None
    if not made:
        raise _not_asked(lines)
    try:
        yield made[0]
    finally:
        _run(quote_command("rm", "-rf", made[0]))


def in_copy(copy: str, inner: StringCommand) -> StringCommand:
    """The command, to be run in a copy."""
    words = ("sh", "-c", QuoteString(inner.get_raw_value()))
    return StringCommand(script_command("packages/in_copy", copy), *words)


def _add(copy: str, plan: RepositoryPlan, role: str) -> None:
    """Add a repository that the host lacks to the copy, as `trust` would add it to the host."""
    repository = plan.repository
    if repository is None or plan.source is None or not plan.needed:
        return
    if plan.netrc:
        raise Stopped(findings.NOT_ASKED(problem=f"{repository.name} needs a login"))
    keyring = fetch_keyring(repository, role)
    if isinstance(keyring, Finding):
        raise Stopped(keyring)
    _put(copy, keyring)
    _put(copy, plan.source)


def _put(copy: str, file: FileWrite) -> None:
    """Write a file into a copy."""
    path, digest = f"{copy}{file.path}", hashlib.sha256(file.data).hexdigest()
    received = StringCommand(
        quote_command("mkdir", "-p", str(PurePosixPath(path).parent)), "&&",
        quote_command("rm", "-f", path), "&&",  # a link would lead out of the copy
        script_command("host/receive", path, digest), "&&",
        quote_command("chmod", f"{file.mode:o}", path),
    )  # fmt: skip
    ok, output = _run(received, _stdin=as_lines(file.data))
    if not ok:
        raise _not_asked(output)


def _refresh(copy: str, manager: PackageManager, plans: Sequence[RepositoryPlan]) -> None:
    """Refresh the lists. Those of the plan's repositories must arrive."""
    known = [plan.repository for plan in plans if plan.repository]
    ok, lines = _run(in_copy(copy, refresh_command(manager, known)))
    if not ok:
        problem, remedy = _explain_failure(lines)
        found = findings.REPOSITORY_UNREADABLE(url=", ".join(each.url for each in known))
        message = f"{problem}. {found.message}"
        raise Stopped(replace(found, message=message, remedy=remedy or found.remedy))


def _not_asked(lines: Sequence[str]) -> Stopped:
    """The warning that a command failed on the host, with these lines of output."""
    problem, remedy = _explain_failure(lines)
    found = findings.NOT_ASKED(problem=problem)
    return Stopped(replace(found, remedy=remedy or found.remedy))


def _explain_failure(lines: Sequence[str]) -> tuple[str, str]:
    """The cause that an output names and its remedy, or the last line and ""."""
    output = [line.removeprefix(BAR) for line in lines]
    cause = find_cause(output)
    return (cause.text, cause.remedy) if cause else (quote_last_line("\n".join(output)), "")


def _run(asked: StringCommand, **how: Any) -> tuple[bool, list[str]]:
    """True if a command succeeded, and its output and errors."""
    ok, output = run_on_host(host, asked, **{**host_arguments(host), **how})
    return ok, [*output.stdout_lines, *output.stderr_lines]
