"""Sources of charts on loopback: a chart repository over HTTP and an OCI registry."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError, URLError

import bcrypt

from gpufleet_sandbox.waiting import wait_until

USER, PASSWORD = "carrier", "p4ss-of-the-test"
_BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@dataclass
class Repository:
    """A chart repository: a folder, its index by `helm repo index`, and the requested paths.

    `missing`: path -> bytes of Content-Length that the response lacks.
    """

    folder: Path
    url: str = ""
    requested: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)

    def index(self, helm: Path) -> None:
        subprocess.run([helm, "repo", "index", self.folder], check=True, capture_output=True)

    @property
    def digest(self) -> str:
        """Digest of the only archive, from the index."""
        lines = (self.folder / "index.yaml").read_text().splitlines()
        (found,) = (line.split()[-1] for line in lines if line.strip().startswith("digest:"))
        return found

    def edit_index(self, old: str, new: str) -> None:
        """Replace text in the index."""
        path = self.folder / "index.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


class _Files(SimpleHTTPRequestHandler):
    """Serves the files of a repository, behind its login if it has one."""

    def __init__(self, repository: Repository, login: bool, *words: Any, **more: Any) -> None:
        self.repository, self.login = repository, login
        super().__init__(*words, directory=str(repository.folder), **more)

    def do_GET(self) -> None:
        self.repository.requested.append(self.path)
        if self.login and self.headers.get("Authorization") != _BASIC:
            self.send_error(401, "Unauthorized")
        else:
            super().do_GET()

    def send_header(self, keyword: str, value: str) -> None:
        if keyword == "Content-Length":
            value = str(int(value) + self.repository.missing.get(self.path, 0))
        super().send_header(keyword, value)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log each request."""


@contextmanager
def chart_repository(folder: Path, *, login: bool = False) -> Iterator[Repository]:
    """A repository of the archives in `folder`; with `login` only for USER and PASSWORD."""
    repository = Repository(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, repository, login))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    repository.url = f"http://127.0.0.1:{server.server_port}"
    yield repository
    server.shutdown()
    server.server_close()


@dataclass(frozen=True)
class Registry:
    """Debian's docker-registry without TLS. `url`: of a folder in it."""

    host: str
    storage: Path

    @property
    def url(self) -> str:
        return f"oci://{self.host}/charts"

    def push(self, helm: Path, archive: Path) -> None:
        """Push an archive as USER."""
        with TemporaryDirectory() as name:
            config = Path(name, "config.json")
            word = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            config.write_text(json.dumps({"auths": {self.host: {"auth": word}}}))
            words = [helm, "push", archive, self.url, "--plain-http", "--registry-config", config]
            subprocess.run(words, check=True, capture_output=True)

    def blob(self, size: int) -> Path:
        """The file of the blob with that size."""
        (found,) = (
            path for path in self.storage.rglob("blobs/**/data") if path.stat().st_size == size
        )
        return found


@contextmanager
def registry(program: Path, folder: Path, *, login: bool = False) -> Iterator[Registry]:
    """A registry that stores everything in `folder`; with `login` only for USER and PASSWORD."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{free.getsockname()[1]}"
    storage = folder / "storage"
    config: dict[str, Any] = {
        "version": 0.1,
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(storage)}},
        "http": {"addr": host},
    }
    if login:
        users = folder / "htpasswd"
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        users.write_text(f"{USER}:{hashed}\n")
        config["auth"] = {"htpasswd": {"realm": "charts", "path": str(users)}}
    path = folder / "registry.yaml"
    path.write_text(json.dumps(config))
    with (folder / "registry.log").open("w") as log:
        process = subprocess.Popen([program, "serve", path], stdout=log, stderr=log)
    try:
        assert wait_until(lambda: _answers(host), 120), (folder / "registry.log").read_text()
        yield Registry(host, storage)
    finally:
        process.terminate()
        process.wait(10)


def _answers(host: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{host}/v2/", timeout=2):
            return True
    except HTTPError as error:
        return error.code == 401
    except URLError:
        return False
