"""Downloads over HTTP, with the proxies and certificate authorities of this machine."""

from __future__ import annotations

import re
import ssl
import threading
from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.util import parse_url

from gpufleet.core.limits import Limit
from gpufleet.core.responses import read_response, run_within
from gpufleet.core.tls import tls_context
from gpufleet.packages.logins import RepositoryLogin

DOWNLOAD_TIMEOUT = urllib3.Timeout(connect=10, read=60)
REDIRECTS = 5
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
DEFAULT_PORTS = {"http": 80, "https": 443}
_WHERE = re.compile(r"^(<[^>]*>|(?:SOCKS)?HTTPS?Connection\([^)]*\)): ")  # urllib3's own objects


class DownloadFailed(Exception):
    """A failed download, with its reason as text. `status`: of the response, 0 without one."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


def same_origin(one: str, other: str) -> bool:
    """True if two URLs have the same scheme, host and port. They then share credentials."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str, int | None]:
    """Parse as urllib3 does, which makes the connection: another parser could see another host."""
    parts = parse_url(url)
    scheme = parts.scheme or ""
    return scheme, parts.host or "", parts.port or DEFAULT_PORTS.get(scheme)


def leaves_tls(old: str, new: str) -> bool:
    """True if a redirect from one URL to another drops TLS."""
    return _origin(old)[0] == "https" and _origin(new)[0] != "https"


def download_url(url: str, limit: Limit, login: RepositoryLogin | None = None) -> bytes:
    """Download a URL. Raises DownloadFailed, also if the content exceeds `limit`.

    Credentials are sent only to the URL's scheme, host and port. Redirects to other hosts are
    followed without them; redirects from https to http are not followed.
    """
    try:
        return run_within(limit.seconds, lambda given_up: _followed(url, limit, login, given_up))
    except TimeoutError:
        raise DownloadFailed(limit.too_slow) from None


def _followed(
    url: str, limit: Limit, login: RepositoryLogin | None, given_up: threading.Event
) -> bytes:
    here = url
    for _ in range(REDIRECTS + 1):
        answer, data = _answer(here, limit, login, given_up)
        if answer.status == 200:
            return data
        location = answer.headers.get("Location")
        if answer.status not in REDIRECT_STATUSES or not location:
            said = f"it answers {answer.status} {answer.reason or ''}".strip()
            raise DownloadFailed(said, answer.status)
        there = urljoin(here, location)
        if leaves_tls(here, there):
            raise DownloadFailed(f"it leads from https to {there}")
        if not same_origin(here, there):
            login = None
        here = there
    raise DownloadFailed("too many redirects")


def _answer(
    url: str, limit: Limit, login: RepositoryLogin | None, given_up: threading.Event
) -> tuple[urllib3.BaseHTTPResponse, bytes]:
    """A response. Its content is read only on success."""
    headers = urllib3.make_headers(
        basic_auth=f"{login.user}:{login.password}" if login else None, user_agent="gpufleet"
    )
    try:
        with _pool(url) as pool:
            answer = pool.request(
                "GET",
                url,
                headers=headers,
                timeout=DOWNLOAD_TIMEOUT,
                retries=False,
                preload_content=False,
            )
            return answer, read_response(answer, limit, given_up) if answer.status == 200 else b""
    except (urllib3.exceptions.HTTPError, ssl.SSLError, OSError, ValueError) as error:
        raise DownloadFailed(_reason(error)) from error


def _pool(url: str) -> urllib3.PoolManager:
    parts = urlsplit(url)
    proxies, tls = getproxies(), tls_context()
    proxy = proxies.get(parts.scheme)
    direct = proxy_bypass(parts.netloc) or _is_direct(parts.hostname or "", proxies.get("no", ""))
    if not proxy or direct:
        return urllib3.PoolManager(ssl_context=tls)
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    whole = urlsplit(proxy)
    if whole.scheme.startswith("socks"):
        from urllib3.contrib.socks import SOCKSProxyManager  # loaded only when needed

        return SOCKSProxyManager(proxy.replace("socks5://", "socks5h://"), ssl_context=tls)
    login = unquote(f"{whole.username}:{whole.password or ''}") if whole.username else None
    headers = urllib3.make_headers(proxy_basic_auth=login)
    return urllib3.ProxyManager(
        proxy, proxy_headers=headers, ssl_context=tls, proxy_ssl_context=tls
    )


def _is_direct(host: str, no_proxy: str) -> bool:
    """True for a loopback address and one in a network of no_proxy: like helm, gpufleet uses no
    proxy for them. urllib compares only names.

    Source: https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config (read 2026-11-28)
    """
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    for word in no_proxy.split(","):
        with suppress(ValueError):  # a name
            if address in ip_network(word.strip(), strict=False):
                return True
    return address.is_loopback


def _reason(error: BaseException) -> str:
    inner = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else None
    text = _WHERE.sub("", str(inner or error))
    return " ".join(text.split()) or type(error).__name__
