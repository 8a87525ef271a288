"""Whether a Kubernetes API answers at an address."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gpufleet.kube.operations.answering import kubernetes_at, version_in

VERSION = json.dumps({"major": "1", "gitVersion": "v1.36.3"}).encode()
DENIED = json.dumps({"kind": "Status", "status": "Failure", "code": 403}).encode()


@pytest.mark.parametrize(
    ("status", "body", "version"),
    [
        (200, VERSION, "v1.36.3"),
        (403, DENIED, "of unknown version"),
        (401, DENIED, "of unknown version"),
        (503, DENIED, ""),
        (403, b"{}", ""),
        (200, b"{}", ""),
        (200, b'{"gitVersion": 1}', ""),
        (200, b"[1]", ""),
        (502, b"<html>Bad Gateway</html>", ""),
    ],
)
def test_what_an_answer_says(status: int, body: bytes, version: str) -> None:
    assert version_in(status, body) == version


class _Api(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/version" else 404)
        self.end_headers()
        self.wfile.write(VERSION)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HTTPServer]:
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    words = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=x"
    )
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*words.split(), *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = HTTPServer(("127.0.0.1", 0), _Api)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_api_is_known_whoever_signed_its_certificate(server: HTTPServer) -> None:
    address = f"127.0.0.1:{server.server_port}"
    assert kubernetes_at(address) == "v1.36.3"


def test_nothing_answers_at_a_closed_port_or_without_a_name() -> None:
    assert kubernetes_at("127.0.0.1:1", 1) == ""
    assert kubernetes_at("[::1]:1", 1) == ""
    assert kubernetes_at("no-such-host.invalid:6443", 1) == ""
