"""`gpufleet verify` on a cluster that does not respond, or is another one: one failure has the
reason, and the other checks are skipped with it."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests import warm

pytestmark = pytest.mark.claim(
    "If a cluster's API is silent, one check fails with the cause and the rest are skipped.",
    level=2,
)

ROOT = Path(__file__).resolve().parents[2]


def checks(folder: Path, kubeconfig: Path, **data: Any) -> dict[str, dict[str, str]]:
    """`gpufleet verify` of one cluster: check -> its result."""
    inventory, found = folder / "inventory.py", folder / "found.json"
    data["cluster_kubeconfig"] = str(kubeconfig)
    inventory.write_text(f"gpu_cluster = (['@local'], {data!r})\n")
    gpufleet = Path(sys.executable).with_name("gpufleet")
    warm.ended([gpufleet, "verify", inventory, "--json", found], ROOT, os.environ)
    return dict(json.loads(found.read_text())["hosts"]["@local"]["checks"])


def kubeconfig_for(url: str) -> str:
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {"token": "of-the-test"}}],
    }
    return json.dumps(config)


class Hanging(threading.Thread):
    """A server that accepts and closes every connection; the number of connections."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.taken = 0

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return  # closed: the test has ended
            self.taken += 1
            connection.close()


@pytest.mark.parametrize("what", ["server", "kubeconfig"])
def test_the_cause_fails_once_and_the_rest_is_skipped(what: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    server = Hanging()
    server.start()
    if what == "server":
        port = server.listening.getsockname()[1]
        kubeconfig.write_text(kubeconfig_for(f"https://127.0.0.1:{port}"))
    found = checks(tmp_path, kubeconfig)
    server.listening.close()
    assert server.taken == (1 if what == "server" else 0), "requested again without any response"
    assert found.pop("settings")["outcome"] == "passed"  # they need no answer
    failed = {name: result for name, result in found.items() if result["outcome"] != "skipped"}
    assert list(failed) == ["reachable"]
    (result,) = failed.values()
    assert (result["outcome"], result["code"]) == ("failed", "GF790")
    assert what == "server" or "no file exists" in result["message"]
    assert "\n" not in result["message"]
    assert "object at 0x" not in result["message"]
    because = [name for name, result in found.items() if "GF790" in result["message"]]
    assert len(because) >= 10


@contextmanager
def api_server(status: int, answer: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """A server with one response to everything: its URL, and the requests so far."""
    asked: list[str] = []

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path}")
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_DELETE = do_PATCH = do_PUT = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"uid": "uid-of-this-one"}}
FORBIDDEN = {"kind": "Status", "apiVersion": "v1", "reason": "Forbidden", "code": 403}


@pytest.mark.parametrize(
    ("status", "answer", "code", "words"),
    [(200, NAMESPACE, "GF824", "uid-of-this-one"), (403, FORBIDDEN, "GF790", "cluster_uid")],
    ids=["another", "forbidden"],
)
def test_nothing_is_asked_of_a_cluster_that_may_be_another(
    status: int, answer: dict[str, Any], code: str, words: str, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with api_server(status, answer) as (url, asked):
        kubeconfig.write_text(kubeconfig_for(url))
        found = checks(tmp_path, kubeconfig, cluster_uid="uid-of-the-wanted-one", verify_load=True)
    assert asked == ["GET /api/v1/namespaces/kube-system"]
    assert found.pop("settings")["outcome"] == "passed"  # they need no answer
    ((name, failed),) = [
        (name, result) for name, result in found.items() if result["outcome"] != "skipped"
    ]
    assert name == "reachable"
    assert (failed["outcome"], failed["code"], words in failed["message"]) == ("failed", code, True)
    assert len([name for name, result in found.items() if code in result["message"]]) >= 10
