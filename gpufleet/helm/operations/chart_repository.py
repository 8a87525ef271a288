"""Downloads from chart repositories over HTTP. The index has an archive's URL and digest.

`helm pull` is not used: neither helm 3 nor 4 compares an archive with the digest in the index, and
both send credentials to every port that a redirect names on the same host (gpu-cluster.md).
"""

from __future__ import annotations

import hashlib
from urllib.parse import urljoin

from gpufleet.core.limits import CHART_LIMIT, INDEX, Limit
from gpufleet.helm.chart_index import BrokenIndex, IndexEntry, parse_index
from gpufleet.helm.findings import charts
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.output import digest_wrong, login_refused
from gpufleet.helm.release import Release
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.packages.logins import RepositoryLogin
from gpufleet.packages.operations.download import (
    DownloadFailed,
    download_url,
    leaves_tls,
    same_origin,
)

OFFERED = 5  # versions of a chart in a finding, newest first


def archive_from_repository(release: Release, login: RepositoryLogin | None) -> bytes:
    """The archive of the release's chart, checked against the index. Raises ClusterProblem."""
    base = release.source.location.rstrip("/") + "/"
    entry = _entry(release, base + "index.yaml", login)
    url = urljoin(base, entry.url)
    if leaves_tls(base, url):
        reason = f"its index refers from https to {url}"
        raise ClusterProblem(findings.CHART_UNREACHABLE(**release.origin, error=reason))
    data = _get(release, url, CHART_LIMIT, login if same_origin(base, url) else None)
    digest = hashlib.sha256(data).hexdigest()
    if entry.digest and digest != entry.digest:
        error = f"expected sha256 {entry.digest} from the index, found {digest}"
        raise ClusterProblem(digest_wrong(release, error))
    return data


def _entry(release: Release, url: str, login: RepositoryLogin | None) -> IndexEntry:
    try:
        entries = parse_index(_get(release, url, INDEX, login), release.chart)
    except BrokenIndex as error:
        why = f"{url} is not the index of a Helm repository: {error}"
        found = findings.CHART_UNREACHABLE(**release.origin, error=why)
        raise ClusterProblem(found) from error
    wanted = release.version.removeprefix("v")
    for entry in entries:
        if entry.version.removeprefix("v") == wanted:
            return entry
    known = ", ".join(entry.version for entry in entries[:OFFERED])
    offers = f"its newest are {known}" if entries else "it has no chart with that name"
    raise ClusterProblem(charts.VERSION_NOT_OFFERED(**release.origin, offers=offers))


def _get(release: Release, url: str, limit: Limit, login: RepositoryLogin | None) -> bytes:
    try:
        return download_url(url, limit, login)
    except DownloadFailed as error:
        if error.status in (401, 403):
            raise ClusterProblem(login_refused(release, str(error))) from error
        found = findings.CHART_UNREACHABLE(**release.origin, error=f"{url}: {error}")
        raise ClusterProblem(found) from error
