#!/usr/bin/env python3
"""HTTP server of the mirror. It runs standalone on a host and uses only the standard library.

    python3 serve.py ROOT --also FOLDER --port 80 --faults FILE

Files that ROOT lacks are served from FOLDER.

FILE, read again at each request, holds one fault or a list of faults as JSON:
{"mode": "404", "path": "ubuntu2204", "delay": 2}. `path` is a regular expression searched in the
request's path (default: every path); the first matching fault applies. Modes: ok, 404, slow (the
response takes `delay` seconds longer), wrong-signature and expired-key (repositories signed by an
unknown or expired key), other-file (sends the file `file` from the folder of FILE), login (requires
the login `login`, NAME:PASSWORD). A missing FILE means no fault.

A request with a whole address, as a proxy gets it, is answered from the same files.
"""

from __future__ import annotations

import argparse
import base64
import hmac
import json
import re
import threading
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

ALTERNATIVES = ".alternatives"  # below ROOT, one folder for each mode with other files
MODES = ("ok", "404", "slow", "wrong-signature", "expired-key", "other-file", "login")


def entry_for(faults: Path | None, path: str) -> dict[str, object]:
    """The entry of FILE for the request `path`; an unknown mode raises ValueError."""
    if faults is None or not faults.exists():
        return {"mode": "ok"}
    text = faults.read_text().strip()
    listed = json.loads(text) if text else []
    for fault in [listed] if isinstance(listed, dict) else listed:
        if re.search(fault.get("path", ""), path):
            mode = fault.get("mode", "ok")
            if mode not in MODES:
                raise ValueError(f"unknown mode {mode!r}, expected one of {', '.join(MODES)}")
            return {**fault, "mode": mode}
    return {"mode": "ok"}


def fault_for(faults: Path | None, path: str) -> tuple[str, float]:
    """Mode and delay (seconds) for the request `path`; an unknown mode raises ValueError."""
    found = entry_for(faults, path)
    mode = str(found["mode"])
    return mode, float(str(found.get("delay", 2.0))) if mode == "slow" else 0.0


class Handler(SimpleHTTPRequestHandler):
    """Serves files below ROOT, subject to the fault for their path."""

    protocol_version = "HTTP/1.1"
    server_version = "gpufleet-mirror"

    def __init__(
        self, *args: object, faults: Path | None = None, also: Path | None = None, **kwargs: object
    ) -> None:
        self.faults, self.also = faults, also
        self.alternative = self.other_file = ""
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def send_head(self):  # type: ignore[no-untyped-def]  # the type of the base class is private
        self.alternative = ""
        if self.path.startswith("http://"):
            self.path = urlsplit(self.path)._replace(scheme="", netloc="").geturl()
        path = unquote(urlsplit(self.path).path)
        try:
            mode, delay = fault_for(self.faults, path)
        except ValueError as error:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, f"faults file: {error}")
            return None
        if mode == "404" or ALTERNATIVES in path:
            self.send_error(HTTPStatus.NOT_FOUND, "File not found")
            return None
        if mode == "login":
            if not self._logs_in(str(entry_for(self.faults, path)["login"])):
                self.send_response(HTTPStatus.UNAUTHORIZED)
                self.send_header("WWW-Authenticate", 'Basic realm="mirror"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return None
            mode = "ok"
        if delay:
            threading.Event().wait(delay)  # the fault is the delay itself
        if mode not in ("ok", "slow"):
            self.alternative = mode
            self.other_file = str(entry_for(self.faults, path).get("file", ""))
            del self.headers["If-Modified-Since"]  # no 304 for a client's copy of the right file
        return super().send_head()

    def _logs_in(self, login: str) -> bool:
        expected = "Basic " + base64.b64encode(login.encode()).decode()
        return hmac.compare_digest(self.headers.get("Authorization", ""), expected)

    def translate_path(self, path: str) -> str:
        if self.alternative == "other-file" and self.faults:
            return str(self.faults.with_name(self.other_file))
        if self.alternative:
            other = super().translate_path(f"/{ALTERNATIVES}/{self.alternative}{path}")
            if Path(other).is_file():
                return other
        found = super().translate_path(path)
        if self.also and not Path(found).exists():
            return str(self.also / Path(found).relative_to(self.directory))
        return found

    def guess_type(self, path: str) -> str:  # type: ignore[override]
        """A client takes a manifest of an image by its type."""
        if "/manifests/" in str(path):
            return "application/vnd.oci.image.manifest.v1+json"
        return super().guess_type(path)

    def address_string(self) -> str:
        return str(self.client_address[0])


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # for forty concurrent hosts


def main() -> None:
    parser = argparse.ArgumentParser(description="HTTP server of the sandbox's mirror")
    parser.add_argument("root", type=Path)
    parser.add_argument("--bind", default="")
    parser.add_argument("--port", type=int, default=80)
    parser.add_argument("--faults", type=Path)
    parser.add_argument("--also", type=Path)
    options = parser.parse_args()
    handler = partial(
        Handler, directory=str(options.root.resolve()), faults=options.faults, also=options.also
    )
    with Server((options.bind, options.port), handler) as server:
        print(f"serving {options.root} on port {server.server_address[1]}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
