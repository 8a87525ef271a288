"""An API server whose response never ends or expands in memory soon causes a finding."""

from __future__ import annotations

import gzip
import json
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core import responses
from gpufleet.core.limits import MIB, Limit
from gpufleet.kube.kubeconfig import Kubeconfig
from gpufleet.kube.operations import api
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.verify import cluster
from gpufleet.verify.checks import CheckFailed
from gpufleet.verify.cluster import CheckedCluster
from gpufleet.verify.inventory import Target

MOST = 64 * MIB  # bytes; a reader without a limit stops here, and fails the test
PAGES = 200  # of a list, likewise
Answer = tuple[int, dict[str, str], bytes]


def packed(*encodings: str) -> Answer:
    data = bytes(MOST)
    for encoding in encodings:
        data = gzip.compress(data) if encoding == "gzip" else zlib.compress(data)
    return 200, {"Content-Encoding": ", ".join(encodings)}, data


def page(token: str, count: int = 1) -> Answer:
    items = [{"metadata": {"name": "a"}}] * count
    return 200, {}, json.dumps({"items": items, "metadata": {"continue": token}}).encode()


EXPIRED: Answer = (410, {}, b'{"reason": "Expired"}')
ANSWERS: dict[str, Callable[[int], Answer]] = {
    "/packed": lambda _: packed("gzip"),
    "/deflated": lambda _: packed("deflate"),
    "/twice": lambda _: packed("gzip", "gzip"),
    "/unknown": lambda _: (200, {"Content-Encoding": "br"}, b"{}"),
    "/damaged": lambda _: (200, {"Content-Encoding": "gzip"}, b"{}"),
    "/truncated": lambda _: (200, {"Content-Encoding": "gzip"}, gzip.compress(b"{}" * 99)[:-9]),
    "/plain": lambda _: (200, {}, bytes(MOST)),
    "/deep": lambda _: (200, {}, b"[" * 20_000),
    "/refused": lambda _: (500, {}, bytes(MOST)),
    "/members": lambda _: (200, {"Content-Encoding": "gzip"},
                           gzip.compress(b'{"a"') + gzip.compress(b": 1}")),
    "/tokens": lambda count: page(f"t{count}"),
    "/same": lambda _: page("t"),
    "/empty": lambda count: page(f"t{count}", 0),
    "/expired": lambda count: EXPIRED if count % 2 else page("t"),
}  # fmt: skip


@contextmanager
def server() -> Iterator[str]:
    """An API server with ANSWERS; its URL."""
    asked: dict[str, int] = {}
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            path = path if path in ANSWERS else path.partition("/api")[0]
            if path.startswith("/drip"):
                self.send_response(200)
                self.flush_headers()
                self.drip(b"X-More: 1\r\n" if path == "/drip/head" else b"\r\n" + b" " * 10)
                return
            asked[path] = asked.get(path, -1) + 1
            answer = ANSWERS.get(path, ANSWERS["/tokens"])
            status, headers, data = answer(asked[path]) if asked[path] < PAGES else page("")
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def drip(self, piece: bytes) -> None:
            while not stopped.wait(0.1):
                self.wfile.write(piece)
                self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing, so that the output of the tests stays readable."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Log nothing: the client closed the connection, as expected."""

    listening = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{listening.server_port}"
    stopped.set()
    listening.shutdown()
    listening.server_close()


def kubeconfig(url: str) -> dict[str, Any]:
    return {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {"token": "of-the-test"}}],
    }


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "API_ANSWER", Limit("a test", MIB, 60))
    monkeypatch.setattr(api, "API_PAGES", 30)
    monkeypatch.setattr(cluster, "API_PAGES", 30)
    monkeypatch.setattr(api, "PAUSE", 0.01)


def refused(work: Callable[[ClusterApi], Any]) -> str:
    with server() as url, pytest.raises(ClusterProblem) as caught:
        work(ClusterApi(Kubeconfig("c", kubeconfig(url))))
    (found,) = caught.value.findings
    assert found.code == "GF869"
    return found.message


LARGE = "it sends more than 1 MiB, the limit for a test"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/packed", LARGE),
        ("/deflated", LARGE),
        ("/plain", LARGE),
        ("/refused", LARGE),
        ("/twice", "it is encoded as gzip, gzip, which was not requested"),
        ("/unknown", "it is encoded as br, which was not requested"),
        ("/damaged", "it cannot be decompressed"),
        ("/truncated", "a body that is not JSON"),
        ("/deep", "a body that is not JSON"),
    ],
)
def test_a_response_is_read_to_a_limit(path: str, said: str) -> None:
    message = refused(lambda api: api.get(path))
    assert said in message
    assert message.startswith(f"GET {path} of context 'c'")


def test_a_compressed_response_grows_no_further_than_the_limit() -> None:
    data = packed("gzip")
    ANSWERS["/prepared"] = lambda _: data
    tracemalloc.start()
    refused(lambda api: api.get("/prepared"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * MIB


@pytest.mark.parametrize("path", ["/drip/head", "/drip/body"])
def test_a_slow_response_is_not_waited_for(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "API_ANSWER", Limit("a test", MIB, 1))
    assert "it was not done after 1 s" in refused(lambda api: api.get(path))


@pytest.mark.parametrize("path", ["/tokens", "/same", "/empty", "/expired"])
def test_a_list_without_an_end_is_given_up(path: str) -> None:
    assert "more than 30 pages" in refused(lambda api: api.list(path))


def test_a_response_of_several_parts_is_read_after_one_that_was_refused() -> None:
    with server() as url:
        client = ClusterApi(Kubeconfig("c", kubeconfig(url)))
        with pytest.raises(ClusterProblem):
            client.get("/plain")
        assert client.get("/members") == {"a": 1}


@pytest.mark.parametrize("path", ["/packed", "/tokens"])
def test_checks_read_to_a_limit_too(path: str, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    with server() as url:
        config.write_text(json.dumps(kubeconfig(url + path)))
        checked = CheckedCluster(
            Target("@local", ("gpu_cluster",), {"cluster_kubeconfig": str(config)})
        )
        with pytest.raises(CheckFailed, match="GF790"):
            _ = checked.pods
