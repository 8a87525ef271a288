"""Chart archives: from a repository, an OCI registry or a file, read into ChartContent."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from gpufleet.core.findings import Finding
from gpufleet.core.limits import CHART_LIMIT, INDEX, MIB, UNPACKED_CHART, Limit
from gpufleet.core.private_file import write_private
from gpufleet.helm.chart import BrokenChart, ChartContent, parse_chart
from gpufleet.helm.chart_index import BrokenIndex, IndexEntry, parse_index
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.findings.charts import VERSION_NOT_OFFERED
from gpufleet.helm.operations.calls import Helm
from gpufleet.helm.output import digest_wrong, explain_pull, login_refused
from gpufleet.helm.release import Release
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.packages.findings import LOGIN_FILE
from gpufleet.packages.logins import RepositoryLogin
from gpufleet.packages.operations.download import (
    DownloadFailed,
    download_url,
    leaves_tls,
    same_origin,
)
from gpufleet.packages.operations.logins import LoginFileError, read_logins

OFFERED = 5  # versions of a chart in a finding, newest first
PULLED_IN = 180  # time limit of a download, in seconds
# from tarfile, which does not check all numbers in headers
_UNREADABLE = (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, IndexError)


def chart_archive(release: Release, helm: Helm, cache: Path) -> Path:
    """The local archive of the release's chart. Raises ClusterProblem.

    Downloaded archives are cached by chart, version and sha256. They are reused without a request
    to the repository while the sha256 matches, because a chart's version identifies its content.
    """
    source = release.source
    if source.kind == "archive":
        path = Path(source.location)
        if not path.is_file():
            raise ClusterProblem(findings.CHART_NOT_IN_FOLDER(**release.origin))
        return path
    key = hashlib.sha256(source.location.encode()).hexdigest()[:16]
    folder = cache / "charts" / key
    return _cached(folder, release) or _fetched(folder, release, helm)


def _cached(folder: Path, release: Release) -> Path | None:
    """The cached archive, or None. A folder that other users can write to is not used."""
    if not all(map(_is_ours_alone, (folder.parent, folder))):
        return None
    for path in folder.glob(f"{release.chart}-{release.version}-sha256-*.tgz"):
        if _is_ours_alone(path) and path == _place(folder, release, path.read_bytes()):
            return path
        path.unlink()  # corrupt
    return None


def _is_ours_alone(path: Path) -> bool:
    found = path.stat() if path.exists() else None
    return found is not None and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _place(folder: Path, release: Release, data: bytes) -> Path:
    digest = hashlib.sha256(data).hexdigest()
    return folder / f"{release.chart}-{release.version}-sha256-{digest}.tgz"


def _fetched(folder: Path, release: Release, helm: Helm) -> Path:
    """Download and validate the archive, then cache it. An invalid archive is never cached."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder.parent, folder):
        place.chmod(0o700)  # users with write access here could replace charts
    login = find_login(release.source.logins, release.source.location)
    with tempfile.TemporaryDirectory(dir=folder) as partial:
        if release.source.kind == "oci":
            with registry_environment(login, release.source.location) as environment:
                path = _pulled(release, helm, Path(partial), environment)
        else:
            path = Path(partial) / "chart.tgz"
            path.write_bytes(archive_from_repository(release, login))
        read_chart(path, release)
        return path.replace(_place(folder, release, path.read_bytes()))


def archive_from_repository(release: Release, login: RepositoryLogin | None) -> bytes:
    """The archive of the release's chart, checked against the index. Raises ClusterProblem.

    `helm pull` is not used: neither helm 3 nor 4 compares an archive with the digest in the index,
    and both send credentials to every port that a redirect names on the same host (gpu-cluster.md).
    """
    base = release.source.location.rstrip("/") + "/"
    entry = _index_entry(release, base + "index.yaml", login)
    url = urljoin(base, entry.url)
    if leaves_tls(base, url):
        raise ClusterProblem(_unreachable(release, f"its index refers from https to {url}"))
    data = _downloaded(release, url, CHART_LIMIT, login if same_origin(base, url) else None)
    digest = hashlib.sha256(data).hexdigest()
    if entry.digest and digest != entry.digest:
        error = f"expected sha256 {entry.digest} from the index, found {digest}"
        raise ClusterProblem(digest_wrong(release, error))
    return data


def _index_entry(release: Release, url: str, login: RepositoryLogin | None) -> IndexEntry:
    try:
        entries = parse_index(_downloaded(release, url, INDEX, login), release.chart)
    except BrokenIndex as error:
        why = f"{url} is not the index of a Helm repository: {error}"
        raise ClusterProblem(_unreachable(release, why)) from error
    wanted = release.version.removeprefix("v")
    for entry in entries:
        if entry.version.removeprefix("v") == wanted:
            return entry
    known = ", ".join(entry.version for entry in entries[:OFFERED])
    offers = f"its newest are {known}" if entries else "it has no chart with that name"
    raise ClusterProblem(VERSION_NOT_OFFERED(**release.origin, offers=offers))


def _downloaded(release: Release, url: str, limit: Limit, login: RepositoryLogin | None) -> bytes:
    try:
        return download_url(url, limit, login)
    except DownloadFailed as error:
        if error.status in (401, 403):
            raise ClusterProblem(login_refused(release, str(error))) from error
        raise ClusterProblem(_unreachable(release, f"{url}: {error}")) from error


def _pulled(release: Release, helm: Helm, folder: Path, environment: Mapping[str, str]) -> Path:
    """Pull from an OCI registry. helm verifies the digest."""
    source = release.source
    words = ["pull", source.location, "--version", release.version, "--destination", str(folder)]
    words += ["--plain-http"] if source.plain_http else []

    def tick(_: float) -> None:
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if size > CHART_LIMIT.bytes:
            raise ClusterProblem(_unreachable(release, CHART_LIMIT.too_large))

    result = helm.run(words, timeout=PULLED_IN, tick=tick, more=environment)
    if result.code is None:
        raise ClusterProblem(_unreachable(release, f"no response within {PULLED_IN} s"))
    if not result.ok:
        raise ClusterProblem(explain_pull(result.stderr, release))
    return next(folder.glob("*.tgz"))


def _unreachable(release: Release, reason: str) -> Finding:
    return findings.CHART_UNREACHABLE(**release.origin, error=reason)


def read_chart(archive: Path, release: Release) -> ChartContent:
    """The content of an archive. Raises ClusterProblem if it is not the release's chart."""
    try:
        content = parse_chart(_files(archive))
    except (*_UNREADABLE, RecursionError) as error:
        raise ClusterProblem(_broken(archive, release, str(error))) from error
    wanted = release.version.removeprefix("v")
    if content.name != release.chart or content.version.removeprefix("v") != wanted:
        reason = f"it contains {content.name} {content.version}"
        raise ClusterProblem(_broken(archive, release, reason))
    return content


def _files(archive: Path) -> dict[str, bytes]:
    """The files of an archive, by path in the chart's folder. Raises BrokenChart."""
    with gzip.open(archive) as source:
        unpacked = source.read(UNPACKED_CHART + 1)
    if len(unpacked) > UNPACKED_CHART:
        raise BrokenChart(f"it unpacks to more than {UNPACKED_CHART // MIB} MiB")
    found = {}
    with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as files:
        for member in files:
            content = files.extractfile(member) if member.isfile() else None
            if content and not member.issparse():  # its holes are not in the archive
                found[member.name.removeprefix("./").split("/", 1)[-1]] = content.read()
    return found


def _broken(archive: Path, release: Release, reason: str) -> Finding:
    """The finding. For a download it names the source, not the temporary path."""
    source = release.source
    path = archive if source.kind == "archive" else f"The archive from {source.location}"
    return findings.CHART_BROKEN(path=path, **release.origin, reason=reason)


def find_login(file: str, url: str) -> RepositoryLogin | None:
    """The credentials for a URL's host in a netrc file, `machine HOST login USER password
    PASSWORD`. An entry for HOST:PORT precedes one for HOST. None without file or entry.

    Raises ClusterProblem if the file is invalid or readable by others.
    """
    if not file:
        return None
    try:
        return read_logins(file).find(url)
    except LoginFileError as error:
        found = LOGIN_FILE(path=error.path, setting="cluster_chart_logins", reason=error.reason)
        raise ClusterProblem(found) from error


@contextmanager
def registry_environment(login: RepositoryLogin | None, url: str) -> Iterator[Mapping[str, str]]:
    """Variables for helm's login to a URL's registry, with a file that only this user can read.
    Without credentials, helm uses those of `helm registry login`."""
    if login is None:
        yield {}
        return
    word = base64.b64encode(f"{login.user}:{login.password}".encode()).decode()
    with tempfile.TemporaryDirectory(prefix="gpufleet-login-") as folder:  # mode 0700
        path = Path(folder) / "config.json"
        write_private(path, json.dumps({"auths": {urlsplit(url).netloc: {"auth": word}}}))
        yield {"HELM_REGISTRY_CONFIG": str(path)}
