"""URLs in a chart repository's index, and which hosts get the credentials."""

from __future__ import annotations

import pytest

from gpufleet.core.limits import Limit
from gpufleet.helm.operations import charts
from gpufleet.helm.operations.charts import archive_from_repository
from gpufleet.helm.release import ChartSource, Release
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.packages.logins import RepositoryLogin
from gpufleet.packages.operations.download import leaves_tls, same_origin

LOGIN = RepositoryLogin("carrier", "secret")
BASE = "https://charts.example:8443/gpu"
INDEX = "apiVersion: v1\nentries:\n  tiny:\n  - {{version: 1.0.0, name: tiny, urls: [{url}]}}\n"


def asked(url: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, RepositoryLogin | None]]:
    """The request for the archive and its credentials, for this URL in the index."""
    seen: list[tuple[str, RepositoryLogin | None]] = []

    def download(where: str, limit: Limit, login: RepositoryLogin | None = None) -> bytes:
        seen.append((where, login))
        return INDEX.format(url=url).encode()

    monkeypatch.setattr(charts, "download_url", download)
    release = Release("one", "n", "tiny", "1.0.0", ChartSource("repository", BASE))
    archive_from_repository(release, LOGIN)
    assert seen.pop(0) == (f"{BASE}/index.yaml", LOGIN)
    return seen


@pytest.mark.parametrize(
    ("url", "found", "login"),
    [
        ("tiny-1.0.0.tgz", f"{BASE}/tiny-1.0.0.tgz", LOGIN),
        ("/other/x.tgz", "https://charts.example:8443/other/x.tgz", LOGIN),
        ("https://charts.example:8443/x.tgz", "https://charts.example:8443/x.tgz", LOGIN),
        ("https://charts.example/x.tgz", "https://charts.example/x.tgz", None),
        ("https://evil.example:8443/x.tgz", "https://evil.example:8443/x.tgz", None),
    ],
)
def test_the_login_goes_where_the_index_came_from(
    url: str, found: str, login: RepositoryLogin | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(url, monkeypatch) == [(found, login)]


@pytest.mark.parametrize("url", ["http://charts.example:8443/x.tgz", "http://other.example/x.tgz"])
def test_an_index_with_tls_does_not_lead_away_from_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ClusterProblem) as caught:
        asked(url, monkeypatch)
    (finding,) = caught.value.findings
    assert (finding.code, f"from https to {url}" in finding.message) == ("GF841", True)


@pytest.mark.parametrize(
    "url", [r"http://evil.example\@repo.example/x", "http://repo.example@evil.example/x"]
)
def test_another_reading_of_an_address_is_another_origin(url: str) -> None:
    assert not same_origin("http://repo.example/index.yaml", url)
    assert leaves_tls("https://repo.example/index.yaml", url)
