"""Guarantees for repositories over HTTP that `helm pull` lacks, so gpufleet downloads those charts
itself. Once an assertion here fails, helm can take over that part."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpufleet.core.limits import CHART_LIMIT, MIB
from tests.cluster.serving import PASSWORD, USER
from tests.cluster.tiny import archive

pytestmark = pytest.mark.claim(
    "gpufleet handles what `helm pull` does not promise of repositories over HTTP.",
    level=5,
)

INDEX = """apiVersion: v1
entries:
  tiny: [{name: tiny, version: 1.0.0, apiVersion: v2, urls: [tiny-1.0.0.tgz], digest: DIGEST}]
"""


@dataclass
class Site:
    """A chart repository. `logins`: path -> whether the request had a login; `moved`: target of the
    redirect for its archive; `padding`: number of bytes after the archive."""

    chart: bytes
    moved: str = ""
    padding: int = 0
    url: str = ""
    logins: dict[str, bool] = field(default_factory=dict)


class Handler(BaseHTTPRequestHandler):
    def __init__(self, site: Site, *words: object) -> None:
        self.site = site
        super().__init__(*words)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        site = self.site
        site.logins[self.path] = "Authorization" in self.headers
        is_index = self.path == "/index.yaml"
        moved = site.moved if not is_index else ""
        self.send_response(302 if moved else 200)
        if moved:
            self.send_header("Location", moved)
        self.end_headers()
        self.wfile.write(INDEX.replace("DIGEST", "ab" * 32).encode() if is_index else site.chart)
        for _ in range(0 if is_index else site.padding // MIB):
            self.wfile.write(bytes(MIB))

    def log_message(self, format: str, *args: object) -> None:
        """Do not log each request."""


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    """A repository whose index has a wrong digest for its archive, and another site."""
    chart = Path(archive(tmp_path)).read_bytes()  # once: gzip writes the time
    found = Site(chart), Site(chart)
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, site)) for site in found]
    for site, server in zip(found, servers, strict=True):
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        site.url = f"http://127.0.0.1:{server.server_port}"
    yield found
    for server in servers:
        server.shutdown()
        server.server_close()


def pulled(helm: Path, folder: Path, url: str) -> list[Path]:
    """Archives that helm pulls from a repository whose login is in a file, not in arguments."""
    entry = {"name": "site", "url": url, "username": USER, "password": PASSWORD}
    config = folder / "repositories.yaml"
    config.write_text(json.dumps({"apiVersion": "v1", "repositories": [entry]}))
    config.chmod(0o600)
    places = {"HELM_REPOSITORY_CONFIG": config, "HELM_CACHE_HOME": folder / "cache"}
    environment = {**os.environ, **{name: str(path) for name, path in places.items()}}
    for words in (["repo", "update"], ["pull", "site/tiny", "--version", "1.0.0"]):
        subprocess.run([helm, *words], env=environment, cwd=folder, check=True, timeout=900)
    return list(folder.glob("*.tgz"))


def test_helm_neither_checks_digests_nor_protects_logins_nor_limits_sizes(
    helm: Path, tmp_path: Path, sites: tuple[Site, Site]
) -> None:
    site, other = sites
    site.moved = f"{other.url}/elsewhere"
    other.padding = CHART_LIMIT.bytes
    folder = tmp_path / "pulled"
    folder.mkdir()
    (found,) = pulled(helm, folder, site.url)
    assert site.logins["/index.yaml"], "helm sends the login to the repository"
    assert other.logins["/elsewhere"], "and after a redirect to another port"
    assert found.stat().st_size > CHART_LIMIT.bytes
    assert found.read_bytes().startswith(site.chart), "despite the digest in the index"
