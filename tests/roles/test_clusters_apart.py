"""Several clusters in one inventory: an invalid response stops only its cluster."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpufleet.core.limits import API_ANSWER
from tests import warm
from tests.not_found import not_found

pytestmark = pytest.mark.claim(
    "An odd answer of one cluster's API stops that cluster only.",
    level=2,
)

ROOT = Path(__file__).resolve().parents[2]
VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
SYSTEM = {"metadata": {"name": "kube-system", "uid": "uid-of-the-test"}}
ITEMS = {"items": [], "groups": []}
SOUND = {"/version": VERSION, "/api/v1/namespaces/kube-system": SYSTEM}


@contextmanager
def api(answers: dict[str, Any]) -> Iterator[str]:
    """An API server with these responses, by path, and SOUND ones otherwise; its URL. It has no
    object of gpufleet's."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            missing = path.rsplit("/", 1)[1].startswith("gpufleet")
            answer = not_found(path) if missing else {**SOUND, **answers}.get(path, ITEMS)
            packed = isinstance(answer, bytes)
            body = answer if packed else json.dumps(answer).encode()
            self.send_response(404 if missing else 200)
            if packed:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:  # the lock of the cluster
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(201)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: the test output stays readable."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def data(folder: Path, name: str, url: str) -> dict[str, str]:
    """An inventory's data of a cluster; nothing is downloaded for it."""
    helm = folder / "helm"
    helm.write_text("#!/bin/sh\necho v3.22.0\n")
    helm.chmod(0o755)
    path = folder / name
    config = {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": {"token": "of-the-test"}}],
    }
    path.write_text(json.dumps(config))
    return {
        "cluster_kubeconfig": str(path),
        "cluster_helm": str(helm),
        "cluster_chart_dir": str(folder),
    }


def preflight(
    folder: Path, clusters: list[tuple[str, dict[str, Any]]], deploy: str = "preflight"
) -> dict[str, Any]:
    """The report of a deploy: host -> its part."""
    inventory = folder / "inventory.py"
    inventory.write_text(f"gpu_cluster = {clusters!r}\n")
    report = folder / "report.json"
    words = [Path(sys.executable).with_name("pyinfra"), "-y", inventory, f"deploys/{deploy}.py"]
    warm.ended(words, ROOT, {**os.environ, "GPUFLEET_REPORT": str(report)})
    return dict(json.loads(report.read_text())["hosts"])


def codes(part: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in part["findings"]]


ODD: dict[str, dict[str, Any]] = {
    "version": {"/version": {**VERSION, "major": "one"}},
    "long": {"/version": {**VERSION, "minor": "9" * 5000}},
    "node": {"/api/v1/nodes": {"items": [{"metadata": {}}]}},
    "text": {"/api/v1/services": {"items": ["text"]}},
}


def test_an_invalid_response_stops_only_its_cluster_and_names_the_place(tmp_path: Path) -> None:
    with ExitStack() as stack:
        clusters = [
            (f"@cluster/{name}", data(tmp_path, name, stack.enter_context(api(answers))))
            for name, answers in {**ODD, "sound": {}}.items()
        ]
        found = preflight(tmp_path, clusters)
    sound = found.pop("@cluster/sound")
    assert len(found) == len(ODD)
    for name, part in found.items():
        assert codes(part) == ["GF503"], name
        assert "gpufleet.kube." in part["findings"][0]["message"]
    assert "GF503" not in codes(sound)
    assert len(sound["plan"]["releases"]) == 4


def test_a_response_that_grows_stops_only_its_cluster(tmp_path: Path) -> None:
    growing = gzip.compress(bytes(API_ANSWER.bytes + 1), 1)
    with api({"/api/v1/nodes": growing}) as one, api({}) as other:
        clusters = [
            ("@cluster/a", data(tmp_path, "a", one)),
            ("@cluster/b", data(tmp_path, "b", other)),
        ]
        found = preflight(tmp_path, clusters)
    assert codes(found["@cluster/a"]) == ["GF869"]
    assert "it sends more than 128 MiB" in found["@cluster/a"]["findings"][0]["message"]
    assert len(found["@cluster/b"]["plan"]["releases"]) == 4


@pytest.mark.parametrize("deploy", ["preflight", "gpu_cluster"])
def test_every_missing_chart_is_named_at_once(tmp_path: Path, deploy: str) -> None:
    with api({}) as url:
        (part,) = preflight(tmp_path, [("@cluster/a", data(tmp_path, "a", url))], deploy).values()
    missing = [found for found in part["findings"] if found["code"] == "GF815"]
    releases = 4
    assert len({found["message"] for found in missing}) == len(missing) == releases
    assert part["changed"] == 0


def test_two_clusters_with_one_name_are_rejected(tmp_path: Path) -> None:
    with api({}) as sound:
        one = data(tmp_path, "sound", sound)
        other = {**one, "cluster_timeout": 20}
        names = ("@local", "@cluster/prod")
        clusters = [(name, found) for name in names for found in (one, other)]
        found = preflight(tmp_path, [*clusters, ("@cluster/lab", one)])
    assert [codes(found[name]) for name in names] == [["GF822"], ["GF822"]]
    assert "GF822" not in codes(found["@cluster/lab"])
