"""`make demo-cluster` prints why it uses fake charts."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from scripts.chart_repositories import find_unreachable


class Repository(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = self.path == "/charts/index.yaml"
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(b"entries: {}" if found else b"")

    def log_message(self, format: str, *args: object) -> None:
        """Do not log each request."""


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Repository) as served:
        Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


def test_a_repository_with_an_index_is_reached(server: str) -> None:
    assert find_unreachable([f"{server}/charts", f"{server}/charts"]) == []


def test_a_repository_without_an_index_is_named_with_the_reason(server: str) -> None:
    [found] = find_unreachable([f"{server}/charts", f"{server}/none"])
    assert found.startswith(f"{server}/none: ")
    assert "404" in found
