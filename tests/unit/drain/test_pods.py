"""Pods that a drain evicts, pods that it waits for, and the resources that a node offers."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.drain.nodes import gpu_of, gpus_of, missing_resources
from gpufleet.drain.pods import (
    DRAIN_SKIP_LABEL,
    TAINT,
    Policy,
    sort_pods,
    tolerates_taint,
    unreplaced_pods,
    uses_gpu,
)
from tests.unit.drain.pods_setup import GPU, pod

pytestmark = pytest.mark.claim("An upgrade evicts pods with GPUs and no others.", level=1)

RUN = "run-1"


def node(**metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "n", "resourceVersion": "7", **metadata},
        "spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def evicted(*pods: dict[str, Any], **policy: Any) -> list[str]:
    return [each["metadata"]["name"] for each in sort_pods(pods, Policy(**policy)).evict]


@pytest.mark.parametrize(
    ("owner", "spec", "policy", "said"),
    [
        ("RayCluster", {}, {"every": True}, ["ns/p (RayCluster)"]),
        ("RayCluster", {}, {}, []),  # it stays
        ("RayCluster", GPU, {"every": True}, []),  # it is waited for
        ("PyTorchJob", GPU, {"jobs": "evict"}, ["ns/p (PyTorchJob)"]),
        ("ReplicaSet", {}, {"every": True}, []),  # it comes back
        ("DaemonSet", {}, {"every": True}, []),
        ("", {}, {"every": True, "unmanaged": True}, []),
    ],
)
def test_pods_that_may_not_come_back(
    owner: str, spec: dict[str, Any], policy: dict[str, Any], said: list[str]
) -> None:
    assert unreplaced_pods(sort_pods([pod("p", owner, spec)], Policy(**policy))) == said


@pytest.mark.parametrize(
    "spec",
    [
        GPU,
        {"initContainers": [{"resources": {"requests": {"nvidia.com/mig-1g.10gb": 1}}}]},
        {"containers": [{"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]},
        {"runtimeClassName": "nvidia"},
        {"runtimeClassName": "nvidia-cdi"},
        {"containers": [{"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": {"x": {}}}]}]},
        {"resourceClaims": [{"name": "gpu"}]},
        {"volumes": [{"hostPath": {"path": "/dev/nvidia0"}}]},
        {"volumes": [{"hostPath": {"path": "/var/run/cdi"}}]},  # NVIDIA's DRA driver
        {"volumes": [{"hostPath": {"path": "/var/run/nvidia/driver"}}]},
        {"volumes": [{"hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]},
    ],
)
def test_what_uses_a_gpu(spec: dict[str, Any]) -> None:
    assert uses_gpu(pod("p", spec=spec))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": [{"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]}]},
        {"volumes": [{"hostPath": {"path": "/var/log"}}]},
        {"volumes": [{"hostPath": {"path": "/dev"}}]},  # as storage plugins mount it
    ],
)
def test_what_uses_none(spec: dict[str, Any]) -> None:
    assert not uses_gpu(pod("p", spec=spec))


def test_pods_without_a_gpu_leave_only_where_all_do() -> None:
    pods = (pod("gpu"), pod("web", spec={}))
    assert evicted(*pods) == ["gpu"]
    assert evicted(*pods, every=True) == ["gpu", "web"]


def test_what_is_waited_for() -> None:
    volume = {**GPU, "volumes": [{"name": "v", "emptyDir": {}}]}
    pods = [
        pod("job", "Job"),
        pod("alone", ""),
        pod("data", spec=volume),
        pod("kept", labels={DRAIN_SKIP_LABEL: "true"}),
        pod("static", "Node"),
    ]
    found = sort_pods(pods, Policy())
    assert not found.evict
    assert not found.empty
    assert list(found.waited) == [f"ns/{each['metadata']['name']}" for each in pods]
    policy = {"jobs": "evict", "unmanaged": True, "empty_dir": True}
    assert evicted(*pods, **policy) == ["job", "alone", "data"]


def test_an_empty_dir_in_memory_keeps_no_pod() -> None:
    shm = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
    disk = {"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}
    assert evicted(pod("vllm", spec={**GPU, "volumes": [shm]})) == ["vllm"]
    assert not evicted(pod("vllm", spec={**GPU, "volumes": [shm, disk]}))


@pytest.mark.parametrize("owner", ["PyTorchJob", "MPIJob", "RayCluster", "Workflow"])
def test_gpu_work_of_other_controllers_is_waited_for(owner: str) -> None:
    found = sort_pods([pod("p", owner)], Policy())
    assert found.waited == {"ns/p": f"it is of a {owner} (upgrade_jobs)"}
    assert not found.evict
    assert evicted(pod("p", owner), jobs="evict") == ["p"]
    assert evicted(pod("p", owner, spec={}), every=True) == ["p"]


@pytest.mark.parametrize("owner", ["ReplicaSet", "ReplicationController", "StatefulSet"])
def test_pods_that_are_replaced_are_evicted(owner: str) -> None:
    assert evicted(pod("p", owner)) == ["p"]


def test_a_label_that_is_not_true_changes_nothing() -> None:
    found = sort_pods([pod("plugin", "DaemonSet", labels={DRAIN_SKIP_LABEL: "false"})], Policy())
    assert found.empty
    assert len(found.clients) == 1


def test_a_node_is_checked_with_a_gpu_and_no_other_device() -> None:
    assert gpu_of(["nvidia.com/cx7", "nvidia.com/gpu"]) == "nvidia.com/gpu"
    assert gpu_of(["nvidia.com/cx7", "nvidia.com/mig-1g.10gb"]) == "nvidia.com/mig-1g.10gb"
    assert gpu_of([]) == ""


def test_pods_that_have_ended_or_are_ending() -> None:
    ended = {**pod("ended", "Job"), "status": {"phase": "Succeeded"}}
    assert sort_pods([ended], Policy()).empty
    ending = sort_pods([pod("ending", deletionTimestamp="now")], Policy())
    assert ending.going == ["ns/ending"]
    assert not ending.empty


def test_plugins_of_other_devices_stay_if_they_would_return_at_once() -> None:
    """k8snetworkplumbingwg/sriov-network-operator#840: its device plugin tolerates every taint."""
    folder = {"hostPath": {"path": "/var/lib/kubelet/device-plugins"}}
    plugin = {"volumes": [{"name": "v", **folder}]}
    everything = {"tolerations": [{"operator": "Exists"}]}
    sriov = pod("sriov", "DaemonSet", spec={**plugin, **everything})
    gpu = pod("gpu", "DaemonSet", spec={**GPU, **plugin, **everything})
    other = pod("other", "DaemonSet", spec=plugin)
    assert sort_pods([sriov, gpu, other], Policy()).clients == [gpu, other]
    assert evicted(pod("p", spec={**plugin, **everything})) == ["p"]


def test_clients_of_daemonsets_leave_last_and_others_stay() -> None:
    plugin = pod("plugin", "DaemonSet", spec={"runtimeClassName": "nvidia"})
    network = pod("network", "DaemonSet", spec={})
    found = sort_pods([plugin, network], Policy(every=True))
    assert found.empty
    assert found.clients == [plugin]


def test_static_pods_stay_in_a_drain_of_the_whole_node() -> None:
    static = pod("etcd", "Node", spec={}, annotations={"kubernetes.io/config.mirror": "x"})
    assert sort_pods([static], Policy(every=True)).empty


@pytest.mark.parametrize(
    ("toleration", "through"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, False),
        ({"key": TAINT, "operator": "Exists"}, True),
    ],
)
def test_who_tolerates_the_taint(toleration: dict[str, str], through: bool) -> None:
    assert tolerates_taint(pod("p", spec={"tolerations": [toleration]}), TAINT) is through


def test_what_a_node_offers_less() -> None:
    offered = {"status": {"allocatable": {"nvidia.com/gpu": "7", "cpu": "4", "nvidia.com/x": "0"}}}
    assert gpus_of(offered) == {"nvidia.com/gpu": "7"}
    assert missing_resources({"nvidia.com/gpu": "8"}, gpus_of(offered)) == "nvidia.com/gpu: 7 of 8"
    for before in ("7", "6"):  # the change may have returned one that was lost
        assert missing_resources({"nvidia.com/gpu": before}, gpus_of(offered)) is None
    assert (
        missing_resources({"nvidia.com/gpu": "10"}, gpus_of(offered)) == "nvidia.com/gpu: 7 of 10"
    )
    assert missing_resources({"nvidia.com/mig-1g.5gb": "7"}, gpus_of(offered))
