"""The Job of `gpufleet verify -k load`: the free GPUs, and the resources that it requests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.verify.load import (
    TOLERATION,
    LoadRequest,
    LoadResult,
    build_job,
    count_free_gpus,
    find_idle_gpus,
    gpu_tolerations,
)

pytestmark = pytest.mark.claim(
    "The load test knows which GPUs are free and which are idle.",
    level=1,
)


def node(
    name: str, gpus: int, *, cordoned: bool = False, taint: str = "", effect: str = "NoSchedule"
) -> Any:
    taints = [SimpleNamespace(key=taint, effect=effect, value=None)] if taint else None
    return SimpleNamespace(
        metadata=SimpleNamespace(name=name),
        spec=SimpleNamespace(unschedulable=cordoned, taints=taints),
        status=SimpleNamespace(allocatable={"nvidia.com/gpu": str(gpus)}),
    )


def pod(place: str, gpus: int, phase: str = "Running") -> Any:
    part = SimpleNamespace(resources=SimpleNamespace(limits={"nvidia.com/gpu": str(gpus)}))
    return SimpleNamespace(
        spec=SimpleNamespace(node_name=place, containers=[part]),
        status=SimpleNamespace(phase=phase),
    )


@pytest.mark.parametrize(
    ("nodes", "pods", "free"),
    [
        ([node("a", 8)], [], 8),
        ([node("a", 8)], [pod("a", 2), pod("a", 4, "Succeeded"), pod("b", 1)], 6),
        ([node("a", 8), node("b", 8, cordoned=True)], [pod("b", 8)], 8),
        ([node("a", 1)], [pod("a", 1), pod("a", 1)], 0),
        ([], [], 0),
        ([node("a", 8, taint="nvidia.com/gpu")], [], 8),
        ([node("a", 8, taint="nvidia.com/gpu", effect="NoExecute")], [], 0),
        ([node("a", 8, taint="spot", effect="PreferNoSchedule")], [], 8),
        ([node("a", 8), node("b", 8, taint="node.kubernetes.io/not-ready")], [], 8),
        ([node("a", 8), node("b", 8, taint="sku")], [], 8),
    ],
)
def test_free_gpus(nodes: list[Any], pods: list[Any], free: int) -> None:
    assert count_free_gpus(nodes, pods) == free


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        ({}, []),
        ({"device_plugin_values": {"tolerations": [{"key": "sku"}, {"operator": "Exists"}]}},
         ["sku"]),
        ({"device_plugin_values": {"tolerations": [{"key": "other"}]},
          "gpu_operator_values": {"daemonsets": {"tolerations": [{"key": "sku"}]}},
          "cluster_stack": "gpu-operator"}, ["sku"]),
        ({"device_plugin_values": {"tolerations": "- key: sku"}}, []),
    ],
)  # fmt: skip
def test_pods_of_checks_tolerate_what_the_plugin_tolerates(
    data: dict[str, Any], keys: list[str]
) -> None:
    """NVIDIA/gpu-operator#390: AKS' guide taints GPU nodes with sku=gpu."""
    found = gpu_tolerations(data)
    assert found[0] == TOLERATION
    assert [each["key"] for each in found[1:]] == keys
    assert build_job(LoadRequest.of(data), 1)["spec"]["template"]["spec"]["tolerations"] == [*found]
    assert count_free_gpus([node("a", 8, taint="sku")], [], found) == (8 if keys else 0)


def test_the_job_has_one_pod_per_gpu_and_ends_by_itself() -> None:
    request = LoadRequest.of({
        "verify_load_image": "registry.example/dcgm:1", "verify_load_command": ["/bin/load", "60"],
        "verify_load_seconds": 60, "device_plugin_runtime_class": "nvidia",
    })  # fmt: skip
    job = build_job(request, 16)["spec"]
    assert (job["completions"], job["parallelism"]) == (16, 16)
    assert job["activeDeadlineSeconds"] == 600 + 120
    annotations = job["template"]["metadata"]["annotations"]
    assert annotations["linkerd.io/inject"] == "disabled", "linkerd/linkerd2#7279"
    assert job["template"]["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"
    pod_spec = job["template"]["spec"]
    assert pod_spec["runtimeClassName"] == "nvidia"
    [container] = pod_spec["containers"]
    assert container["command"] == ["/bin/load", "60"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "1"}}


@pytest.mark.parametrize(
    ("answer", "idle"),
    [
        ("no endpoints", "no endpoints"),
        ([], "it has no DCGM_FI_DEV_GPU_UTIL of the Job's pods "
         "(under MIG: DCGM_FI_PROF_GR_ENGINE_ACTIVE)"),
        ([("n1", "0", "95"), ("n1", "1", "80.4")], ["n1 GPU 1: busy 80 %"]),
        ([("n1", "0", "90")], []),
    ],
)  # fmt: skip
def test_idle_gpus(answer: Any, idle: Any) -> None:
    if isinstance(answer, list):
        answer = [
            {"metric": {"Hostname": host, "gpu": gpu}, "value": [0, value]}
            for host, gpu, value in answer
        ]
    asked: list[str] = []
    cluster: Any = SimpleNamespace(prometheus=lambda query: asked.append(query) or answer)
    request = LoadRequest("image", ())
    assert find_idle_gpus(cluster, LoadResult("job-1", 2, ""), request) == idle
    assert 'pod=~"job-1-.*"' in asked[0]


@pytest.mark.parametrize("label", ["node", "kubernetes_node", "hostname", "Hostname"])
def test_equal_gpus_of_two_nodes_are_two(label: str) -> None:
    """dcgm-exporter 4.8.3 and newer have no label Hostname."""
    answer = [
        {"metric": {label: node, "gpu": "0"}, "value": [0, value]}
        for node, value in (("n1", "10"), ("n2", "99"))
    ]
    cluster: Any = SimpleNamespace(prometheus=lambda query: answer)
    found = find_idle_gpus(cluster, LoadResult("job-1", 2, ""), LoadRequest("image", ()))
    assert found == ["n1 GPU 0: busy 10 %"]


def test_parts_of_a_gpu_are_judged_by_their_engines() -> None:
    """NVIDIA/dcgm-exporter#430: under MIG there is no utilization, or (#341) it is 0 or 100."""
    answer = [
        {"metric": {"Hostname": "n1", "gpu": "0", "GPU_I_ID": part}, "value": [0, value]}
        for part, value in (("7", "12"), ("9", "98"))
    ]
    asked: list[str] = []
    cluster: Any = SimpleNamespace(prometheus=lambda query: asked.append(query) or answer)
    found = find_idle_gpus(cluster, LoadResult("job-1", 2, ""), LoadRequest("image", ()))
    assert found == ["n1 GPU 0, MIG instance 7: busy 12 %"]
    for counted in (
        '1 * quantile_over_time(0.5, DCGM_FI_DEV_GPU_UTIL{GPU_I_ID="",',
        '100 * quantile_over_time(0.5, DCGM_FI_PROF_GR_ENGINE_ACTIVE{GPU_I_ID!="",',
    ):
        assert counted in asked[0]
