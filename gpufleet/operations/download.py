"""Downloads over HTTP, with the proxies and certificate authorities of this machine."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3

TIMEOUT = urllib3.Timeout(connect=10, read=60)
REDIRECTS = urllib3.Retry(connect=0, read=0, redirect=5, status=0, other=0)
_WHERE = re.compile(r"^(<[^>]*>|HTTPS?Connection\([^)]*\)): ")  # urllib3's own objects


class DownloadFailed(Exception):
    """Why there is no content, as people read it. `status`: of the answer, 0 where none came."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class Login:
    """A user's name and password."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.user!r}, ***)"


def download(url: str, login: Login | None = None) -> bytes:
    """What is at a URL, whole. Raises DownloadFailed.

    The login goes to the URL's host alone: a redirect to another one is followed without it.
    """
    headers = urllib3.make_headers(
        basic_auth=f"{login.user}:{login.password}" if login else None, user_agent="gpufleet"
    )
    try:
        answer = _pool(url).request("GET", url, headers=headers, timeout=TIMEOUT, retries=REDIRECTS)
    except (urllib3.exceptions.HTTPError, ssl.SSLError, OSError) as error:
        raise DownloadFailed(_reason(error)) from error
    if answer.status != 200:
        raise DownloadFailed(
            f"it answers {answer.status} {answer.reason or ''}".strip(), answer.status
        )
    return answer.data


def _pool(url: str) -> urllib3.PoolManager:
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc) or _is_loopback(parts.hostname or ""):
        return urllib3.PoolManager()
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    whole = urlsplit(proxy)
    login = unquote(f"{whole.username}:{whole.password or ''}") if whole.username else None
    headers = urllib3.make_headers(proxy_basic_auth=login)
    return urllib3.ProxyManager(proxy, proxy_headers=headers)


def _is_loopback(host: str) -> bool:
    """No proxy reaches this machine's own services; helm leaves them out too."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reason(error: BaseException) -> str:
    inner = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else None
    text = _WHERE.sub("", str(inner or error))
    return " ".join(text.split()) or type(error).__name__
