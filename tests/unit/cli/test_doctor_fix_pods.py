"""`gpufleet doctor --fix cluster.plugin`: dead pods of the device plugin, on a fake API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.refused import ApiError
from tests.fakes.plugin_api import CRASH, LAB, PluginApi, at, pod, run_on_lab

Run = Callable[..., Any]
NO_NODES = {
    "code": "GF817", "severity": "warning", "message": "n1 is not Ready.", "remedy": "Wait.",
}  # fmt: skip
NO_POD = {
    "code": "GF809", "severity": "warning", "message": "No pod on n2.", "remedy": "Label it.",
}  # fmt: skip
DOCTOR = ("--fix", "cluster.plugin", "--yes")


def refusing(path: str, *_: Any) -> Any:
    """Answers each request as a server without permissions for the user."""
    raise ApiError(f"GET {path}", 403, {"message": "cannot do that \x1b[2J"}, "lab")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return run_on_lab(monkeypatch)


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
