"""Nodes and the pods on their GPUs, from answers of the API."""

from __future__ import annotations

from gpufleet.kubernetes.members import gpu_pods, parse_members, unready_pods
from tests.unit.kubernetes.members_setup import PODS, node, pod


def test_each_node_with_its_gpus() -> None:
    plane = {"node-role.kubernetes.io/control-plane": ""}
    nodes = [node("gpu-1", gpus=8, unschedulable=True), node("cp-1", "False", labels=plane)]
    control, worker = parse_members(nodes, PODS)
    assert (control.name, control.part, control.ready) == ("cp-1", "control-plane", False)
    assert (control.reason, control.gpus) == ("runtime is down", 0)
    assert (worker.part, worker.ready, worker.reason) == ("worker", True, "")
    assert (worker.gpus, worker.used, worker.cordoned) == (8, 3, True)
    assert worker.version == "v1.36.3"


def test_a_node_that_never_reported_says_so() -> None:
    (found,) = parse_members([{"metadata": {"name": "new"}}], [])
    assert (found.ready, found.reason) == (False, "it has not reported")


def test_pods_that_hold_gpus() -> None:
    assert gpu_pods(PODS) == ["jobs/a", "jobs/b"]


def test_the_clusters_own_pods_that_do_not_run() -> None:
    assert unready_pods(PODS, ["kube-system"]) == ["kube-system/dns"]


def test_a_sidecar_with_a_gpu_holds_it() -> None:
    sidecar = pod("side", "gpu-1")
    sidecar["spec"]["initContainers"] = [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    assert gpu_pods([sidecar]) == ["jobs/side"]


def test_a_pod_with_claimed_devices_may_hold_a_gpu() -> None:
    """The device may be a GPU of dynamic resource allocation. An upgrade counts it as one."""
    claims = pod("dra", "gpu-1"), pod("done", "gpu-1", phase="Succeeded"), pod("waits")
    for each in claims:
        each["spec"]["resourceClaims"] = [{"name": "gpu"}]
    assert gpu_pods(claims) == ["jobs/dra"]


def test_what_a_kubelet_says_forges_no_line() -> None:
    broken = node("gpu-1", "False")
    broken["status"]["conditions"][0]["message"] = "x\x1b[2J\ngpu-9  Ready"
    (found,) = parse_members([broken], [])
    assert found.reason == r"x\x1b[2J\ngpu-9  Ready"
