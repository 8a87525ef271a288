"""Serves the files of a bundle over HTTP, read only. Images are where registries have them, so the
server also is a registry."""

from __future__ import annotations

import posixpath
import sys
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from gpufleet.bundle.images import REGISTRY_FOLDER, read_image_manifest
from gpufleet.bundle.models import MANIFEST, BundleManifest
from gpufleet.core.visible import one_line


class BundleHandler(SimpleHTTPRequestHandler):
    """Serves the files that a manifest names, and nothing else in the folder."""

    def __init__(self, *given: Any, paths: frozenset[str], **how: Any) -> None:
        self.paths = paths
        super().__init__(*given, **how)

    def send_head(self) -> Any:
        asked = unquote(self.path.partition("?")[0].partition("#")[0])
        path = posixpath.normpath(asked).lstrip("/")
        if path == REGISTRY_FOLDER:  # a client asks whether this is a registry
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        if path not in self.paths:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def guess_type(self, path: Any) -> str:
        """The media type. Clients of registries need that of a manifest."""
        if "/manifests/" in str(Path(path).relative_to(self.directory)):
            with suppress(OSError, ValueError):
                return read_image_manifest(Path(path).read_bytes()).kind
        return super().guess_type(path)

    def log_message(self, format: str, *given: Any) -> None:
        """Print a request, without control characters, on standard error."""
        print(one_line(f"{self.address_string()} {format % given}"), file=sys.stderr)


class BundleServer(ThreadingHTTPServer):
    """A server that does not refuse hosts which connect at the same moment."""

    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print why a request broke off, for example because its client restarts."""
        print(one_line(f"{client_address[0]} {sys.exc_info()[1]}"), file=sys.stderr)


def bundle_server(folder: Path, manifest: BundleManifest, address: str, port: int) -> BundleServer:
    """A server that listens; port 0 takes a free one. Raises OSError."""
    paths = frozenset({MANIFEST, *(file.path for file in manifest.files)})
    handler = partial(BundleHandler, directory=str(folder), paths=paths)
    return BundleServer((address, port), handler)
