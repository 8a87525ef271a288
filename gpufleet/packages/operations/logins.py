"""Reads names and passwords for package mirrors from netrc files."""

from __future__ import annotations

import netrc
import os
import re
from collections.abc import Mapping
from pathlib import Path

from gpufleet.core.findings import Finding
from gpufleet.core.paths import expand_user_path
from gpufleet.core.secrets import register_secret
from gpufleet.packages import findings
from gpufleet.packages.logins import Logins, RepositoryLogin

# no blanks, quotes, comment signs or variables of yum, and only ASCII
_PLAIN = re.compile(r"[!%&()*+,./0-9:;<=>?@A-Z\[\]^_a-z{|}~-]+")


class LoginFileError(Exception):
    """A login file is invalid. `reason` does not quote it."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


def read_logins(file: str) -> Logins:
    """The logins of a netrc file. Raises LoginFileError."""
    path = expand_user_path(file)
    try:
        if _is_exposed(path.stat()):
            raise LoginFileError(path, "users other than its owner can read it")
        hosts = netrc.netrc(str(path)).hosts
    except netrc.NetrcParseError as error:  # the message may quote a password
        reason = f"it is not a valid netrc file, near line {error.lineno}"
        raise LoginFileError(path, reason) from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise LoginFileError(path, str(why)) from error
    for _, _, password in hosts.values():
        register_secret(password or "")
    known = {host: RepositoryLogin(user, word or "") for host, (user, _, word) in hosts.items()}
    return Logins(known)


def _is_exposed(about: os.stat_result) -> bool:
    """True if other users can read the file. The group of root's file may, if we are not root:
    Kubernetes mounts a Secret as root's file that the pod's group can read.

    Source: https://github.com/kubernetes/website/issues/37388 (read 2026-11-29)
    """
    mounted = about.st_uid == 0 != os.geteuid()
    return bool(about.st_mode & (0o037 if mounted else 0o077))


def node_logins(
    files: Mapping[str, tuple[str, str | None]],
) -> tuple[dict[str, Logins], list[Finding]]:
    """The logins of a host's roles, and errors in their files.

    `files`: role -> the setting with the path, and the file.
    """
    problems: list[Finding] = []
    found = {}
    for role, (setting, file) in files.items():
        try:
            found[role] = package_logins(file) if file else Logins()
        except LoginFileError as error:
            path, reason = error.path, error.reason
            problems.append(findings.LOGIN_FILE(path=path, setting=setting, reason=reason))
    return ({}, problems) if problems else (found, [])


def package_logins(file: str) -> Logins:
    """The logins of a file. Raises LoginFileError if apt or yum cannot use one of them."""
    logins = read_logins(file)
    for machine, login in logins.by_machine.items():
        if not _PLAIN.fullmatch(login.user) or not _PLAIN.fullmatch(login.password):
            reason = f"the name or password for {machine} has characters that apt or yum split at"
            raise LoginFileError(Path(file), reason)
    return logins
