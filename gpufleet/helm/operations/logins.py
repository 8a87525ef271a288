"""Names and passwords for chart repositories: out of a file, never among a program's words."""

from __future__ import annotations

import base64
import json
import netrc
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from gpufleet.core.findings import Finding
from gpufleet.helm.findings import charts as findings
from gpufleet.helm.operations.download import Login
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.node.settings import NodeSettings
from gpufleet.packages import findings as package_findings
from gpufleet.packages.logins import Logins, NodeLogins, RepositoryLogin

# no blanks, quotes, comment signs, variables of yum and nothing outside ASCII
_PLAIN = re.compile(r"[!%&()*+,./0-9:;<=>?@A-Z\[\]^_a-z{|}~-]+")


def find_login(file: str, url: str) -> Login | None:
    """The login of a URL's host in a file of netrc's form, `machine HOST login USER password
    PASSWORD`; an entry for HOST:PORT goes before one for HOST. None where `file` is "" or has none.

    Raises ClusterProblem where the file cannot be used, or others can read it.
    """
    if not file:
        return None
    try:
        hosts = _read(file)
    except LoginFileError as error:
        raise ClusterProblem(findings.LOGIN_FILE(path=error.path, reason=error.reason)) from error
    parts = urlsplit(url)
    found = hosts.get(parts.netloc) or hosts.get(parts.hostname or "")
    return Login(found[0], found[2] or "") if found else None


class LoginFileError(Exception):
    """A file with logins cannot be used; `reason` quotes nothing of it."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


def _read(file: str) -> Mapping[str, tuple[str, str | None, str | None]]:
    """Machine -> name, account, password of a file of netrc's form. Raises LoginFileError."""
    path = Path(file).expanduser()
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise LoginFileError(path, "others than its owner can read it")
        return netrc.netrc(str(path)).hosts
    except netrc.NetrcParseError as error:  # its message may quote a password
        reason = f"it is not of netrc's form, near line {error.lineno}"
        raise LoginFileError(path, reason) from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise LoginFileError(path, str(why)) from error


def node_logins(settings: NodeSettings) -> tuple[NodeLogins, list[Finding]]:
    """The logins that the roles of a host have, and what is wrong with their files."""
    problems: list[Finding] = []
    files = {
        "driver_repo_logins": settings.driver.repo_logins,
        "toolkit_repo_logins": settings.toolkit.repo_logins,
    }
    found = {}
    for setting, file in files.items():
        try:
            found[setting] = package_logins(file) if file else Logins()
        except LoginFileError as error:
            problems.append(
                package_findings.LOGIN_FILE(path=error.path, setting=setting, reason=error.reason)
            )
    return (NodeLogins(*found.values()), []) if not problems else (NodeLogins(), problems)


def package_logins(file: str) -> Logins:
    """The logins of a file; LoginFileError where apt and yum cannot be told one of them."""
    by_machine = {}
    for machine, (user, _, password) in _read(file).items():
        if not _PLAIN.fullmatch(user) or not _PLAIN.fullmatch(password or ""):
            reason = f"the name or password for {machine} has characters that apt or yum split at"
            raise LoginFileError(Path(file), reason)
        by_machine[machine] = RepositoryLogin(user, password or "")
    return Logins(by_machine)


@contextmanager
def registry_environment(login: Login | None, url: str) -> Iterator[Mapping[str, str]]:
    """Variables by which helm logs in to the registry of a URL, by a file that only this user can
    read. Without a login none: helm uses what `helm registry login` left."""
    if login is None:
        yield {}
        return
    word = base64.b64encode(f"{login.user}:{login.password}".encode()).decode()
    with tempfile.TemporaryDirectory(prefix="gpufleet-login-") as folder:  # mode 0700
        path = Path(folder) / "config.json"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({"auths": {urlsplit(url).netloc: {"auth": word}}}, file)
        yield {"HELM_REGISTRY_CONFIG": str(path)}
