"""Evidence of a cluster: nodes, pods, events and logs, or the reasons why they are missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpufleet.evidence.archive import EvidenceArchive
from gpufleet.evidence.objects import MAX_POD_LOGS
from gpufleet.evidence.operations import clusters
from gpufleet.kube.findings import API_UNREACHABLE
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from tests.fakes.cluster_api import make_node
from tests.unit.evidence.evidence_setup import unpacked

PODS, EVENTS = "/api/v1/namespaces/monitoring/pods", "/api/v1/namespaces/monitoring/events"
Collect = Callable[..., dict[str, str]]


def pod(name: str, *, ready: bool = True, restarts: int = 0, **state: Any) -> dict[str, Any]:
    container = {"name": "c", "restartCount": restarts, "state": state or {"running": {}}}
    env = [{"name": "API_TOKEN", "value": "planted-in-a-pod"}, {"name": "PLAIN", "value": "kept"}]
    return {
        "metadata": {
            "name": name,
            "namespace": "monitoring",
            "managedFields": ["noise"],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"env": env}),
                "kept": "yes",
            },
        },
        "spec": {"containers": [{"name": "c", "env": env}]},
        "status": {
            "containerStatuses": [container],
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


class Api:
    """An API server with these lists by path. Other lists are empty."""

    context, url = "lab", "https://lab"

    def __init__(self, **lists: Any) -> None:
        self.lists: dict[str, Any] = {"/api/v1/nodes": [make_node("gpu-1")], **lists}
        self.logs: list[tuple[str, str]] = []

    def list(self, path: str) -> Any:
        found = self.lists.get(path, [])
        if isinstance(found, Exception):
            raise found
        return found

    def get(self, path: str) -> Any:
        return {"metadata": {"uid": "of-the-lab"}}

    def read_log(self, path: str, **query: str) -> str:
        self.logs.append((path.split("/")[-2], query["previous"]))
        assert int(query["limitBytes"]) <= 1 << 20
        assert int(query["tailLines"]) <= 500
        return f"log of {path}\n"

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def collect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collect:
    """`collect(api, data…)`: the files of the archive."""

    def collects(api: Api, **data: Any) -> dict[str, str]:
        monkeypatch.setattr(clusters, "ClusterApi", lambda access: api)
        archive = EvidenceArchive(tmp_path / "case.tar.gz")
        data = {"cluster_kubeconfig": "/none", **data}
        clusters.collect_cluster(archive, "lab", data)
        archive.finish("head")
        return unpacked(archive.path)

    return collects


def test_nodes_pods_events_and_logs(collect: Collect) -> None:
    waits = pod("waits", ready=False, waiting={"reason": "ContainerCreating"})
    loops = pod("loops", ready=False, restarts=3, waiting={"reason": "CrashLoopBackOff"})
    pods = [pod("good"), waits, loops]
    event = {
        "lastTimestamp": "2026-11-29T09:00:00Z",
        "type": "Warning",
        "reason": "BackOff",
        "message": "Back-off\nrestarting, GET http://h/?a=b&access_token=planted",
        "involvedObject": {"kind": "Pod", "name": "loops"},
    }
    first = {**event, "lastTimestamp": "2026-11-28T09:00:00Z", "reason": "Pulled"}
    api = Api(**{PODS: pods, EVENTS: [event, first]})
    found = collect(api)
    assert json.loads(found["clusters/lab/nodes.json"])[0]["metadata"]["name"] == "gpu-1"
    shown = found["clusters/lab/monitoring/pods.json"]
    assert [each["metadata"]["name"] for each in json.loads(shown)] == ["good", "waits", "loops"]
    assert "planted-in-a-pod" not in shown
    assert "kept" in shown
    assert "noise" not in shown
    assert found["clusters/lab/monitoring/events.txt"].splitlines() == [
        "2026-11-28T09:00:00Z Warning Pod/loops Pulled Back-off restarting, GET http://h/?a=b&access_token=***",
        "2026-11-29T09:00:00Z Warning Pod/loops BackOff Back-off restarting, GET http://h/?a=b&access_token=***",
    ]
    assert api.logs == [("loops", "false"), ("loops", "true"), ("good", "false")]
    assert "clusters/lab/monitoring/logs/loops/c.previous.log" in found


def test_a_large_cluster_has_the_logs_of_pods_that_fail(collect: Collect) -> None:
    pods = [pod(f"good-{number}") for number in range(300)] + [pod("bad", ready=False)]
    api = Api(**{PODS: pods})
    found = collect(api)
    assert len(api.logs) == MAX_POD_LOGS
    assert api.logs[0] == ("bad", "false")
    assert f"clusters/lab/logs: {301 - MAX_POD_LOGS} more: only the first" in found["MANIFEST.txt"]


def test_more_objects_than_the_limit_are_left_out_whole(
    collect: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpufleet.evidence.objects.MAX_OBJECTS_CHARS", 5000)
    nodes = [make_node(f"gpu-{number}") for number in range(100)]
    found = collect(Api(**{"/api/v1/nodes": nodes}))
    shown = len(json.loads(found["clusters/lab/nodes.json"]))
    assert 0 < shown < 100
    assert f"GET /api/v1/nodes (the first {shown} of 100)" in found["MANIFEST.txt"]


def test_a_list_that_is_refused_or_odd_does_not_hide_others(collect: Collect) -> None:
    denied = ApiError(f"GET {PODS}", 403, {"message": "pods is forbidden"}, "lab")
    odd = {"/api/v1/nodes": ["a text"], "/api/v1/namespaces/gpu-operator/pods": [{}]}
    found = collect(Api(**{PODS: denied, **odd, EVENTS: [{}]}))
    assert "clusters/lab/monitoring/events.txt" in found
    manifest = found["MANIFEST.txt"]
    assert "clusters/lab/monitoring/pods.json: GF" in manifest
    assert "clusters/lab/nodes.json: an unexpected response" in manifest
    assert "clusters/lab: an unexpected response" in manifest, "of the logs"


def test_a_cluster_that_is_silent_or_another_one(collect: Collect) -> None:
    silent = ClusterProblem(API_UNREACHABLE(context="lab", url="https://lab", reason="timed out"))
    found = collect(Api(**{"/api/v1/nodes": silent}))
    assert "\nclusters/lab: GF" in found["MANIFEST.txt"]
    assert "timed out" in found["MANIFEST.txt"]
    api = Api()
    found = collect(api, cluster_uid="of-another")
    assert set(found) == {"MANIFEST.txt"}
    assert "of-the-lab" in found["MANIFEST.txt"]
    assert set(collect(Api(), cluster_uid="of-the-lab")) > {"MANIFEST.txt"}
    assert "cluster_kubeconfik" in collect(Api(), cluster_kubeconfik="x")["MANIFEST.txt"]
