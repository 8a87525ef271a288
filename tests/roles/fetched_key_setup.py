"""Shared by the tests of fetched key."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BASIC = "Basic " + base64.b64encode(b"carrier:secret").decode()
MIB = 1 << 20
APT = "/usr/lib/apt/apt-helper"


@dataclass
class Site:
    """A server: its redirects, and its requests with their Authorization."""

    to: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    port: int = 0

    def url(self, name: str = "127.0.0.1") -> str:
        return f"http://{name}:{self.port}"


@contextmanager
def serve(tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    site, stopped = Site(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            said = self.headers.get("Authorization")
            if self.path.split("?")[0].endswith("/closed") and not said:
                self._answer(401, b"", **{"WWW-Authenticate": 'Basic realm="mirror"'})
                return
            site.asked.append((self.path, said))
            if "moved" in self.path:
                self._answer(302, b"", Location=site.to)
            elif self.path == "/endless":
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for _ in range(64 * MIB >> 16):
                    self.wfile.write(b"10000\r\n" + bytes(1 << 16) + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")
            elif self.path == "/drip":
                self.send_response(200)
                self.send_header("Content-Length", "1000")
                self.end_headers()
                while not stopped.wait(0.3):
                    self.wfile.write(b"x")
            else:
                self._answer(200, b"key")

        do_HEAD = do_GET

        def _answer(self, code: int, data: bytes, **heads: str) -> None:
            self.send_response(code)
            for name, value in heads.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: the test output stays readable."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Log nothing: the client closed the connection, as expected."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    site.port = server.server_port
    yield site
    stopped.set()
    server.shutdown()
    server.server_close()
