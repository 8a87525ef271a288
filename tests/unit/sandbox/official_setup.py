"""Shared by the tests of official."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gpufleet_sandbox.cluster import official
from gpufleet_sandbox.cluster.official import Binary

PROGRAM = b"#!/bin/sh\necho Kubernetes v1.36.3\n"
PATH = "/release/v1.36.3/bin/linux/amd64/kube-apiserver"
URL = f"https://dl.example{PATH}"


@dataclass
class Site:
    """Files of a server: path -> content; `drip`: it endlessly sends single bytes."""

    files: dict[str, bytes] = field(default_factory=dict)
    drip: bool = False
    requests: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


class Handler(BaseHTTPRequestHandler):
    def __init__(self, site: Site, *words: object) -> None:
        self.site = site
        super().__init__(*words)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.site.requests.append(self.path)
        content = self.site.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) if not self.site.drip else 10**9))
        self.end_headers()
        self.wfile.write(content)
        while self.site.drip and not self.site.over.wait(0.01):
            self.wfile.write(b"x")

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A mirror of the official sites on loopback."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    found = Site({PATH: PROGRAM})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, found))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setenv(official.SITE, f"http://127.0.0.1:{server.server_port}/")
    yield found
    found.over.set()
    server.shutdown()
    server.server_close()


def binary(content: bytes, member: str = "") -> Binary:
    return Binary(URL, hashlib.sha256(content).hexdigest(), member)
