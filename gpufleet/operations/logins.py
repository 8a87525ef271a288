"""Names and passwords for chart repositories: out of a file, never among a program's words."""

from __future__ import annotations

import base64
import json
import netrc
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from gpufleet.findings import charts as findings
from gpufleet.operations.cluster_access import ClusterProblem
from gpufleet.operations.download import Login


def find_login(file: str, url: str) -> Login | None:
    """The login of a URL's host in a file of netrc's form, `machine HOST login USER password
    PASSWORD`; an entry for HOST:PORT goes before one for HOST. None where `file` is "" or has none.

    Raises ClusterProblem where the file cannot be used, or others can read it.
    """
    if not file:
        return None
    path = Path(file).expanduser()
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise _unusable(path, "others than its owner can read it")
        hosts = netrc.netrc(str(path)).hosts
    except netrc.NetrcParseError as error:  # its message may quote a password
        raise _unusable(path, f"it is not of netrc's form, near line {error.lineno}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise _unusable(path, str(reason)) from error
    parts = urlsplit(url)
    found = hosts.get(parts.netloc) or hosts.get(parts.hostname or "")
    return Login(found[0], found[2] or "") if found else None


def _unusable(path: Path, reason: str) -> ClusterProblem:
    return ClusterProblem(findings.LOGIN_FILE(path=path, reason=reason))


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
