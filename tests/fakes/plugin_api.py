"""An API server with the pods of a device plugin, and the command `gpufleet doctor` on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.doctor.operations import clusters
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.refused import ApiError
from tests.fakes.fixed_fleet import FixedFleet
from tests.not_found import not_found
from tests.unit.status.fleets import NOW

LAB = {"status": "converged", "releases": {}, "plan": {"steps": []}, "findings": []}
PODS, SETS = "/api/v1/namespaces/gpu/pods", "/apis/apps/v1/daemonsets"
NODES = "/api/v1/nodes"
QUIETLY = {"monitoring_enabled": False}  # no question to a Prometheus
CRASH = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}


def at(seconds: int) -> str:
    """A time of the API, some seconds before now."""
    return datetime.fromtimestamp(NOW - seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def daemonset(
    name: str = "nvidia-device-plugin",
    path: str = "/var/lib/kubelet/device-plugins",
    image: str = "k8s-device-plugin",
) -> Any:
    pod = {
        "containers": [{"name": "c", "image": f"nvcr.io/nvidia/{image}:v0.19.3"}],
        "volumes": [{"name": "v", "hostPath": {"path": path}}],
    }
    return {
        "metadata": {"name": name, "namespace": "gpu", "uid": f"uid-{name}"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"spec": pod}},
        "status": {},
    }


def pod(
    name: str, *, since: int = 600, ready: bool = False, owner: str = "nvidia-device-plugin",
    state: Any = None, **about: Any,
) -> Any:  # fmt: skip
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": at(since)}
    owners = [{"kind": "DaemonSet", "name": owner, "uid": f"uid-{owner}", "controller": True}]
    named = {"name": name, "namespace": "gpu", "uid": f"uid-{name}", "ownerReferences": owners}
    container = {"name": "c", "image": "i", "state": state or {}, "restartCount": 9}
    status = {"phase": "Running", "conditions": [condition], "containerStatuses": [container]}
    return {"metadata": named | about, "spec": {"nodeName": "n1"}, "status": status}


class PluginApi:
    """An API server; a deleted pod gets a successor."""

    context = "lab"

    def __init__(self, *pods: Any, recovers: bool = True) -> None:
        self.pods = {each["metadata"]["name"]: each for each in pods}
        self.sets = [
            daemonset(),
            daemonset("web", "/srv"),
            daemonset("vgpu", image="vgpu-device-plugin"),
            daemonset("dcgm-exporter", "/var/lib/kubelet/pod-resources", "dcgm-exporter"),
        ]
        self.nodes: list[Any] = []
        self.recovers = recovers
        self.deleted: list[tuple[str, str]] = []  # name, uid
        self.before_delete: Callable[[], None] = lambda: None  # a change by another user
        self.opened: list[KubeAccess] = []

    def __call__(self, access: KubeAccess) -> PluginApi:
        self.opened.append(access)
        return self

    def close(self) -> None: ...

    def list(
        self, path: str, accept: str = "", kept: Any = lambda item: item, /, **query: str
    ) -> list[Any]:
        found = {SETS: self.sets, PODS: list(self.pods.values()), NODES: self.nodes}[path]
        return list(map(kept, found))

    def find(self, path: str) -> Any:
        self.before_delete()
        return self.pods.get(path.removeprefix(f"{PODS}/"))

    def delete(self, path: str, body: Any) -> None:
        name = path.removeprefix(f"{PODS}/")
        if self.pods[name]["metadata"]["uid"] != body["preconditions"]["uid"]:
            raise ApiError(f"DELETE {path}", 409, not_found(path), self.context)
        self.deleted.append((name, body["preconditions"]["uid"]))
        successor = pod(f"{name}-new", ready=self.recovers, since=-5)
        del self.pods[name]
        self.pods[successor["metadata"]["name"]] = successor


def run_on_lab(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`run(api, words…)`: the command on the cluster `lab` of that API server. `part`: its part of
    the plan's report; `data`: of the inventory."""
    clock = iter(range(10**6))
    ticking = SimpleNamespace(
        time=lambda: NOW, monotonic=lambda: float(next(clock)), sleep=lambda seconds: None
    )
    monkeypatch.setattr(clusters, "time", ticking)

    def runs(api: PluginApi, *words: str, part: Any = LAB, **data: str) -> Any:
        both = {"lab": part, "other": LAB}
        fleet = FixedFleet({}, monkeypatch, clusters=both, data=QUIETLY | data)
        monkeypatch.setattr(clusters, "ClusterApi", api)
        return fleet.run("--limit", "lab", *words)

    return runs
