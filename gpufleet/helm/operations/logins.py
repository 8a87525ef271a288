"""Credentials for chart repositories: from a file, never in arguments."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from gpufleet.helm.findings import charts as findings
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.packages.logins import RepositoryLogin
from gpufleet.packages.operations.logins import LoginFileError, read_logins


def find_login(file: str, url: str) -> RepositoryLogin | None:
    """The credentials for a URL's host in a netrc file, `machine HOST login USER password
    PASSWORD`; an entry for HOST:PORT precedes one for HOST. None if `file` is "" or has none.

    Raises ClusterProblem if the file is invalid or readable by others.
    """
    if not file:
        return None
    try:
        return read_logins(file).find(url)
    except LoginFileError as error:
        raise ClusterProblem(findings.LOGIN_FILE(path=error.path, reason=error.reason)) from error


@contextmanager
def registry_environment(login: RepositoryLogin | None, url: str) -> Iterator[Mapping[str, str]]:
    """Variables for helm's login to the registry of a URL, by a file that only this user can read.
    None without credentials: helm uses those of `helm registry login`."""
    if login is None:
        yield {}
        return
    word = base64.b64encode(f"{login.user}:{login.password}".encode()).decode()
    with tempfile.TemporaryDirectory(prefix="gpufleet-login-") as folder:  # mode 0700
        path = Path(folder) / "config.json"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump({"auths": {urlsplit(url).netloc: {"auth": word}}}, file)
        yield {"HELM_REGISTRY_CONFIG": str(path)}
