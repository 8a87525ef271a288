"""Serves the files of a bundle over HTTP, read only."""

from __future__ import annotations

import posixpath
import sys
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from gpufleet.bundle.models import MANIFEST, BundleManifest
from gpufleet.core.visible import one_line


class BundleHandler(SimpleHTTPRequestHandler):
    """Serves the files that a manifest names, and nothing else in the folder."""

    def __init__(self, *given: Any, paths: frozenset[str], **how: Any) -> None:
        self.paths = paths
        super().__init__(*given, **how)

    def send_head(self) -> Any:
        asked = unquote(self.path.partition("?")[0].partition("#")[0])
        if posixpath.normpath(asked).lstrip("/") not in self.paths:
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        return super().send_head()

    def log_message(self, format: str, *given: Any) -> None:
        """Print a request, without control characters, on standard error."""
        print(one_line(f"{self.address_string()} {format % given}"), file=sys.stderr)


def bundle_server(
    folder: Path, manifest: BundleManifest, address: str, port: int
) -> ThreadingHTTPServer:
    """A server that listens; port 0 takes a free one. Raises OSError."""
    paths = frozenset({MANIFEST, *(file.path for file in manifest.files)})
    handler = partial(BundleHandler, directory=str(folder), paths=paths)
    return ThreadingHTTPServer((address, port), handler)
