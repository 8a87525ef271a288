"""Names and passwords for package mirrors, in the formats of apt, yum and dnf. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpufleet.facts.model import NodeFacts
from gpufleet.host.file_write import FileWrite
from gpufleet.packages.repository import SECRET, RepositoryPlan, key_is_trusted

APT_FOLDER = "/etc/apt/auth.conf.d"
_URL = re.compile(r"(?P<scheme>[A-Za-z]+)://(?P<place>(?P<host>\[[^]]*\]|[^/:]*)[^/]*)(?P<path>.*)")


@dataclass(frozen=True, slots=True)
class RepositoryLogin:
    """A user's name and password; its repr shows neither."""

    user: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Logins:
    """Logins by machine, HOST or HOST:PORT."""

    by_machine: Mapping[str, RepositoryLogin] = field(default_factory=dict, repr=False)

    def find(self, url: str) -> RepositoryLogin | None:
        """The login for a URL's host. An entry for HOST:PORT takes precedence over one for HOST."""
        parts = _URL.fullmatch(url)
        if parts is None:
            return None
        return self.by_machine.get(parts["place"]) or self.by_machine.get(_host(parts))


NO_LOGINS = Logins()


def with_login(plan: RepositoryPlan, logins: Logins, facts: NodeFacts) -> RepositoryPlan:
    """The plan of a repository with its login. Unchanged if the repository needs no login."""
    repository, source = plan.repository, plan.source
    login = logins.find(repository.url) if repository else None
    if repository is None or source is None or login is None:
        return plan
    auth = None
    if repository.manager == "apt":
        auth = apt_file(repository.name, repository.url, login)
    else:
        source = FileWrite(source.path, f"{source.content!s}{rpm_lines(login)}", SECRET)
    trusted = key_is_trusted(repository.keyring, repository.key_fingerprints, facts)
    right = trusted and source.is_on(facts) and (auth is None or auth.is_on(facts))
    netrc = netrc_line(repository.key_url, login)
    return replace(plan, source=source, needed=not right, login=auth, netrc=netrc)


def apt_file(name: str, url: str, login: RepositoryLogin) -> FileWrite:
    """apt's credentials for one repository (apt_auth.conf(5)).

    An entry without a scheme applies only to https.
    """
    place = url.rstrip("/").removeprefix("https://")
    text = f"machine {place}/ login {login.user} password {login.password}\n"
    return FileWrite(f"{APT_FOLDER}/gpufleet-{name}.conf", text, SECRET)


def rpm_lines(login: RepositoryLogin) -> str:
    """The login in a section of a .repo file."""
    return f"username={login.user}\npassword={login.password}\n"


def netrc_line(url: str, login: RepositoryLogin) -> str:
    """A login in the format of curl and wget."""
    parts = _URL.fullmatch(url)
    host = _host(parts) if parts else ""
    return f"machine {host} login {login.user} password {login.password}\n"


def _host(parts: re.Match[str]) -> str:
    return parts["host"].strip("[]").lower()
