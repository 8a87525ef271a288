"""`gpufleet doctor --fix cluster.plugin`: dead pods of the device plugin, on a fake API server."""

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
NO_NODES = {
    "code": "GF817", "severity": "warning", "message": "n1 is not Ready.", "remedy": "Wait.",
}  # fmt: skip
NO_POD = {
    "code": "GF809", "severity": "warning", "message": "No pod on n2.", "remedy": "Label it.",
}  # fmt: skip
PODS, SETS = "/api/v1/namespaces/gpu/pods", "/apis/apps/v1/daemonsets"
CRASH = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
QUIETLY = {"monitoring_enabled": False}  # no question to a Prometheus
DOCTOR = ("--fix", "cluster.plugin", "--yes")


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
        ]
        self.recovers = recovers
        self.deleted: list[tuple[str, str]] = []  # name, uid
        self.before_delete: Callable[[], None] = lambda: None  # a change by another user
        self.opened: list[KubeAccess] = []

    def __call__(self, access: KubeAccess) -> PluginApi:
        self.opened.append(access)
        return self

    def close(self) -> None: ...

    def list(self, path: str, **query: str) -> list[Any]:
        return {SETS: self.sets, PODS: list(self.pods.values())}[path]

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


def refusing(path: str, *_: Any) -> Any:
    """Answers each request as a server without permissions for the user."""
    raise ApiError(f"GET {path}", 403, {"message": "cannot do that \x1b[2J"}, "lab")


Run = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run(api, words…)`: the command on the cluster `lab` of that API server."""
    clock = iter(range(10**6))
    ticking = SimpleNamespace(
        time=lambda: NOW, monotonic=lambda: float(next(clock)), sleep=lambda seconds: None
    )
    monkeypatch.setattr(clusters, "time", ticking)

    def runs(api: PluginApi, *words: str, part: Any = LAB, **data: str) -> Any:
        fleet = FixedFleet(
            {}, monkeypatch, clusters={"lab": part, "other": LAB}, data=QUIETLY | data
        )
        monkeypatch.setattr(clusters, "ClusterApi", api)
        return fleet.run("--limit", "lab", *words)

    return runs


@pytest.mark.parametrize(
    "dead", [pod("p1"), pod("p1", since=3, state=CRASH)], ids=["not Ready", "crashes"]
)
def test_a_dead_pod_of_the_plugin_is_deleted(run: Run, dead: Any) -> None:
    api = PluginApi(dead, pod("p2", ready=True), pod("web-1", owner="web"))
    seen = run(api)
    assert (seen.exit_code, api.deleted) == (1, [])
    assert "cluster.plugin" in seen.stdout
    done = run(api, *DOCTOR)
    assert api.deleted == [("p1", "uid-p1")]
    assert "kubectl -n gpu delete pod p1" in done.stdout
    assert "lab: cluster.plugin was WARNING, is PASS; verdict was WARNING, is PASS" in done.stdout
    assert done.exit_code == 0


@pytest.mark.parametrize(
    "fine",
    [
        pod("p1", ready=True),
        pod("p1", since=60),
        pod("p1", deletionTimestamp=at(5)),
        pod("p1", owner="vgpu"),
        pod("p1", owner="web"),
    ],
    ids=["Ready", "it starts", "it ends", "a plugin whose restart ends work", "no plugin"],
)
def test_other_pods_are_left(run: Run, fine: Any) -> None:
    api = PluginApi(fine)
    done = run(api, *DOCTOR)
    assert (done.exit_code, api.deleted) == (0, [])
    assert "nothing to fix" in done.stdout


def test_a_pod_that_recovered_before_the_yes_is_left(run: Run) -> None:
    api = PluginApi(pod("p1"))
    api.before_delete = lambda: api.pods.update(p1=pod("p1", ready=True))
    assert run(api, *DOCTOR).exit_code == 0
    assert api.deleted == []


def test_a_successor_that_is_not_ready_is_no_pass(run: Run) -> None:
    api = PluginApi(pod("p1"), recovers=False)
    done = run(api, *DOCTOR)
    assert len(api.deleted) == 1
    assert "cluster.plugin was WARNING, is WARNING" in done.stdout
    assert done.exit_code == 1


def test_pods_of_lost_nodes_are_left(run: Run) -> None:
    """Nothing ends them there, and their successors do not start."""
    api = PluginApi(pod("p1"))
    done = run(api, *DOCTOR, part={**LAB, "findings": [NO_NODES]})
    assert (done.exit_code, api.deleted) == (1, [])
    assert "follows from cluster.nodes" in done.stdout
    assert "kubectl get nodes" in done.stdout


@pytest.mark.parametrize("reads", [True, False], ids=["its pods are Ready", "they are not read"])
def test_a_plugin_without_a_dead_pod_is_left_with_its_next_step(run: Run, reads: bool) -> None:
    api = PluginApi(pod("p1", ready=True))
    if not reads:
        api.list = refusing  # type: ignore[method-assign]
    done = run(api, *DOCTOR, part={**LAB, "findings": [NO_POD]})
    assert (done.exit_code, api.deleted) == (1, [])
    assert "no safe fix" in done.stdout
    assert "kubectl get pods" in done.stdout


def test_the_command_names_the_cluster(run: Run) -> None:
    api = PluginApi(pod("p1"))
    done = run(api, *DOCTOR, cluster_kubeconfig="/etc/lab config", cluster_context="lab")
    assert "kubectl --kubeconfig '/etc/lab config' --context lab -n gpu" in done.stdout
    assert set(api.opened) == {KubeAccess("/etc/lab config", "lab")}


def test_a_cluster_that_refuses_says_why(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    api = PluginApi(pod("p1"))

    monkeypatch.setattr(api, "delete", refusing)
    done = run(api, *DOCTOR)
    assert done.exit_code == 1
    assert "lab: " in done.stderr
    assert "\x1b" not in done.output
