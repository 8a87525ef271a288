"""Downloads from real servers on loopback: responses, redirects, proxies, credentials."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import urllib3

from gpufleet.core.limits import Limit
from gpufleet.packages.logins import RepositoryLogin
from gpufleet.packages.operations import download
from gpufleet.packages.operations.download import DownloadFailed, download_url, same_origin

LIMIT = Limit("a test", 1 << 20, 20)
LOGIN = RepositoryLogin("carrier", "p4ss: of the test")
BASIC = "Basic " + base64.b64encode(b"carrier:p4ss: of the test").decode()


class Site:
    """The requests of a server, with their Authorization, and its redirects."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.elsewhere = ""
        self.url = ""


@contextmanager
def serve() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heads = self.headers
            said = heads.get("Authorization") or heads.get("Proxy-Authorization")
            site.asked.append((self.path, said))
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("Location", site.elsewhere)
            else:
                self.send_response(200 if self.path.endswith("/there") else 404)
            self.end_headers()
            self.wfile.write(b"content")

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing, so that the output of the tests stays readable."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    yield site
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_what_is_there_and_what_is_not() -> None:
    with serve() as site:
        assert download_url(f"{site.url}/there", LIMIT) == b"content"
        with pytest.raises(DownloadFailed, match="it answers 404 Not Found") as caught:
            download_url(f"{site.url}/none", LIMIT)
        assert caught.value.status == 404


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:9/x", "Connection refused"),
        ("https://127.0.0.1:9/x", "Connection refused"),
        ("http://nowhere.invalid/x", "resolve"),
    ],
)
def test_what_does_not_answer(url: str, words: str) -> None:
    with pytest.raises(DownloadFailed, match=words) as caught:
        download_url(url, LIMIT)
    assert "object at" not in str(caught.value)


def test_a_server_without_tls() -> None:
    with serve() as site, pytest.raises(DownloadFailed, match=r"(?i)ssl|tls"):
        download_url(site.url.replace("http:", "https:") + "/there", LIMIT)


def test_a_login_stays_with_its_host() -> None:
    with serve() as site, serve() as other:
        assert download_url(f"{site.url}/there", LIMIT, LOGIN) == b"content"
        site.elsewhere = f"{other.url}/there"
        assert download_url(f"{site.url}/moved", LIMIT, LOGIN) == b"content"
        assert site.asked == [("/there", BASIC), ("/moved", BASIC)]
        assert other.asked == [("/there", None)]
    assert LOGIN.password not in repr(LOGIN)


def test_a_login_does_not_come_back_from_another_host() -> None:
    with serve() as site, serve() as other:
        site.elsewhere = f"{other.url}/moved"
        other.elsewhere = f"{site.url}/there"
        assert download_url(f"{site.url}/moved", LIMIT, LOGIN) == b"content"
        assert site.asked == [("/moved", BASIC), ("/there", None)]


def test_redirects_end() -> None:
    with serve() as site:
        site.elsewhere = f"{site.url}/moved"
        with pytest.raises(DownloadFailed, match="too many redirects"):
            download_url(f"{site.url}/moved", LIMIT)
        assert len(site.asked) == 6


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("https://charts.example/x", True),
        ("https://CHARTS.example:443/x", True),
        ("http://charts.example/x", False),
        ("http://charts.example:443/x", False),
        ("https://charts.example:8443/x", False),
        ("https://charts.example.org/x", False),
        ("https://charts.example@evil.example/x", False),
    ],
)
def test_what_counts_as_the_same_place(other: str, same: bool) -> None:
    assert same_origin("https://charts.example/index.yaml", other) == same


def test_a_redirect_from_https_to_http_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, RepositoryLogin | None]] = []

    def answer(
        url: str, limit: Limit, login: RepositoryLogin | None, given_up: threading.Event
    ) -> tuple[urllib3.HTTPResponse, bytes]:
        asked.append((url, login))
        headers = {"Location": "http://charts.example/x"}
        return urllib3.HTTPResponse(body=b"", headers=headers, status=302), b""

    monkeypatch.setattr("gpufleet.packages.operations.download._answer", answer)
    with pytest.raises(DownloadFailed, match=r"from https to http://charts\.example/x"):
        download_url("https://charts.example/x", LIMIT, LOGIN)
    assert asked == [("https://charts.example/x", LOGIN)]


def test_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve() as proxy:
        address = proxy.url.removeprefix("http://")
        monkeypatch.setenv("http_proxy", f"http://carrier:p4ss%3A%20of%20the%20test@{address}")
        assert download_url("http://charts.invalid/there", LIMIT) == b"content"
        assert proxy.asked == [("http://charts.invalid/there", BASIC)]
        monkeypatch.setenv("no_proxy", "charts.invalid")
        with pytest.raises(DownloadFailed):
            download_url("http://charts.invalid/there", LIMIT)
        assert len(proxy.asked) == 1


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_no_proxy_for_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve() as site:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        url = site.url.replace("127.0.0.1", host)
        assert download_url(f"{url}/there", LIMIT) == b"content"


@pytest.mark.parametrize(("host", "direct"), [("10.1.2.3", True), ("11.1.2.3", False)])
def test_no_proxy_for_a_network_of_no_proxy(
    host: str, direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "example.com, 10.0.0.0/8,[")
    pool = download._pool(f"https://{host}:8443/x")
    assert isinstance(pool, urllib3.ProxyManager) is not direct


def test_a_socks_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("socks")
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:9")
    assert type(download._pool("https://charts.invalid/x")).__name__ == "SOCKSProxyManager"
    with pytest.raises(DownloadFailed, match="Connection refused"):
        download_url("https://charts.invalid/x", LIMIT)
