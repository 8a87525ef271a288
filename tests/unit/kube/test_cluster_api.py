"""Requests to the API: the server's clock, and the check before every write."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gpufleet.kube.findings import LEASE_LOST
from gpufleet.kube.kubeconfig import Kubeconfig
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import MAX_API_TRIES, PAUSE, SETTLING, STARTING_SERVER, ClusterApi
from gpufleet.kube.operations.refused import ApiError, is_final


class Server:
    """An API server that responds the same to everything. `date`: the header that it sends;
    `status`: 0 for a broken connection."""

    def __init__(self) -> None:
        self.date = "Sun, 22 Nov 2026 10:00:00 GMT"
        self.status, self.body = 200, b"{}"
        self.asked: list[str] = []
        self.api: ClusterApi


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            found.asked.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if not found.status:
                self.close_connection = True
                return
            self.send_response_only(found.status)
            if found.date:
                self.send_header("Date", found.date)
            self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing, so that the output of the tests stays readable."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True).start()
    found.api = ClusterApi(kubeconfig(f"http://127.0.0.1:{listening.server_port}"))
    yield found
    listening.shutdown()
    listening.server_close()


def kubeconfig(url: str) -> Kubeconfig:
    return Kubeconfig(
        "c",
        {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "users": [{"name": "c", "user": {"token": "of-the-test"}}],
        },
    )


@pytest.mark.parametrize(
    ("date", "clock"),
    [
        ("Sun, 22 Nov 2026 10:00:00 GMT", 1_795_341_600),
        ("", 0),
        ("yesterday", 0),
        ("Sun, 99 Nov 2026 10:00:00 GMT", 0),
    ],
)
def test_the_time_is_the_servers(server: Server, date: str, clock: int) -> None:
    server.date = date
    api = server.api
    api.get("/version")
    assert api.clock == clock


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr("gpufleet.kube.operations.api.time.sleep", found.append)
    return found


def test_a_read_waits_for_a_server_that_responded_before(
    server: Server, pauses: list[float]
) -> None:
    server.status = 0
    with pytest.raises(ClusterProblem):
        server.api.get("/x")
    assert pauses == []  # it never answered
    server.status = 200
    server.api.get("/x")
    server.status = 0
    with pytest.raises(ClusterProblem):
        server.api.create("/x", {})
    assert pauses == []  # the server may have carried it out
    with pytest.raises(ClusterProblem):
        server.api.get("/x")
    assert pauses == [PAUSE] * (MAX_API_TRIES - 1)


def test_a_server_that_has_just_come_back_may_reject_everything(
    server: Server, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A starting API server answers 403 until it has read roles and bindings."""
    now = 1000.0
    monkeypatch.setattr("gpufleet.kube.operations.api.time.monotonic", lambda: now)
    server.status = 403
    with pytest.raises(ApiError):
        server.api.get("/x")  # the server was never away: a permission is missing
    server.status = 0
    with pytest.raises(ClusterProblem):
        server.api.get("/x")
    server.status = 403
    with pytest.raises(ClusterProblem) as found:
        server.api.get("/x")
    assert not is_final(found.value), "who waits for the server goes on"
    assert STARTING_SERVER in found.value.findings[0].message
    now += SETTLING
    with pytest.raises(ApiError) as lacking:
        server.api.get("/x")
    assert is_final(lacking.value)


def test_a_server_that_is_busy_is_asked_again_later(server: Server, pauses: list[float]) -> None:
    server.status = 429
    with pytest.raises(ApiError):
        server.api.get("/x")
    assert server.asked == ["GET /x"] * MAX_API_TRIES
    assert pauses == [PAUSE] * (MAX_API_TRIES - 1)


WRITES: dict[str, Callable[[ClusterApi], Any]] = {
    "POST": lambda api: api.create("/x", {}),
    "PUT": lambda api: api.replace("/x", {}),
    "PATCH": lambda api: api.merge("/x", {}),
    "DELETE": lambda api: api.delete("/x"),
}


@pytest.mark.parametrize("method", WRITES)
def test_a_write_requires_the_lease(server: Server, method: str) -> None:
    api = server.api

    def lost() -> None:
        raise ClusterProblem(LEASE_LOST(holder="ada"))

    WRITES[method](api)
    api.before_write = lost
    with pytest.raises(ClusterProblem):
        WRITES[method](api)
    api.get("/y")
    assert [line.split("?")[0] for line in server.asked] == [f"{method} /x", "GET /y"]


@pytest.mark.parametrize(
    "answer",
    ["x", 7, ["x"], {"details": ["x"]}, {"details": {"causes": "x"}}, {"details": {"causes": [1]}},
     {"message": ["x"], "details": "x"}],
)  # fmt: skip
@pytest.mark.parametrize("status", [403, 503])
def test_an_error_of_a_proxy_may_have_any_shape(
    server: Server, status: int, answer: object
) -> None:
    server.status, server.body = status, json.dumps(answer).encode()
    with pytest.raises(ApiError) as error:
        server.api.get("/api/v1/x")
    assert (error.value.status, error.value.causes) == (status, ())


def test_a_list_that_is_refused_is_asked_once(server: Server) -> None:
    server.status = 403
    with pytest.raises(ApiError):
        server.api.list("/z")
    assert len(server.asked) == 1


def test_a_list_without_items_is_not_an_empty_one(server: Server) -> None:
    with pytest.raises(ClusterProblem) as caught:
        server.api.list("/z")
    assert "a list without items" in caught.value.findings[0].message


STATUS = {"kind": "Status", "reason": "NotFound", "details": {"name": "n", "kind": "nodes"}}
NAMELESS = json.dumps({"kind": "Status", "reason": "NotFound", "details": {}}).encode()
UNSERVED = b"404 page not found\n"
UNKNOWN = b"the server could not find the requested resource\n"  # client-go, of any other 404
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.mark.parametrize(
    ("path", "body", "missing"),
    [
        ("/api/v1/nodes/n", json.dumps(STATUS).encode(), True),
        ("/api/v1/nodes/n", b"default backend - 404", False),
        ("/api/v1/nodes/n", UNSERVED, False),
        ("/api/v1/nodes/n", b"", False),
        ("/api/v1/nodes/n", UNKNOWN, False),
        ("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/n", UNKNOWN, False),
        ("/apis/apps/v1/namespaces/a/daemonsets/n", UNKNOWN, False),
        (f"{CRDS}/n", UNKNOWN, False),
        ("/apis/policy/v1", UNKNOWN, False),
        ("/apis/policy/v1", NAMELESS, True),
        ("/apis/policy/v1", UNSERVED, True),
        ("/openapi/v3/apis/x/v1", b"", True),
        ("/apis/policy/v1", b"<html>404 Not Found</html>", False),
    ],
)
def test_what_is_not_there_is_so_by_the_server_itself(
    server: Server, path: str, body: bytes, missing: bool
) -> None:
    """A 404 of a load balancer is temporary, so it does not mean that the object is missing."""
    server.status, server.body = 404, body
    if missing:
        assert server.api.find(path) is None
        return
    with pytest.raises(ApiError) as error:
        server.api.find(path)
    assert not error.value.is_final


def test_a_log_is_text_and_a_refusal_an_error(server: Server) -> None:
    server.body = b"\xffline\n{not JSON"
    assert server.api.read_log("/api/v1/namespaces/n/pods/p/log", tailLines="5") == (
        "\N{REPLACEMENT CHARACTER}line\n{not JSON"
    )
    assert server.asked == ["GET /api/v1/namespaces/n/pods/p/log?tailLines=5"]
    server.status, server.body = 404, b"page not found"
    with pytest.raises(ApiError):
        server.api.read_log("/api/v1/namespaces/n/pods/p/log")


def test_a_service_is_asked_once_and_its_answer_may_be_anything(
    server: Server, pauses: list[float]
) -> None:
    server.api.get("/x")  # a read is repeated from now on
    server.status, server.body = 200, b'{"status": "success"}'
    assert server.api.ask_service("/proxy", query="up") == {"status": "success"}
    assert server.asked[-1] == "GET /proxy?query=up"
    for status, body in ((200, b"<html>"), (401, b"Unauthorized\n"), (429, b""), (0, b"")):
        server.status, server.body = status, body
        assert isinstance(server.api.ask_service("/proxy"), str)
    assert pauses == []
