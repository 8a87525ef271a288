"""The check that nodes advertise all their GPUs, on nodes as an API server returns them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.verify.checks import CheckFailed
from gpufleet.verify.cluster import COUNT, PRESENT, RESOURCE, CheckedCluster
from gpufleet.verify.inventory import Target
from tests.post_deploy.test_cluster import test_gpus_are_offered as check


def node(advertised: str, capacity: str, **labels: str) -> Any:
    return SimpleNamespace(
        metadata=SimpleNamespace(name="gpu-01", labels={PRESENT[0]: "true", **labels}),
        status=SimpleNamespace(
            allocatable={RESOURCE: advertised}, capacity={RESOURCE: capacity}, conditions=[]
        ),
    )


def cluster_of(found: Any, **data: Any) -> CheckedCluster:
    cluster = CheckedCluster(Target("@local", ("gpu_cluster",), data))
    cluster.__dict__.update(nodes=[found], pods=[])
    return cluster


@pytest.mark.parametrize(
    ("found", "slices"),
    [
        (node("8", "8", **{COUNT: "8"}), None),
        (node("8", "8"), None),
        (node("32", "32", **{COUNT: "8"}), 4),
        (node("32", "32"), 4),  # without GPU feature discovery their number is unknown
    ],
)
def test_all_gpus_are_offered(found: Any, slices: int | None) -> None:
    check(cluster_of(found, device_plugin_time_slicing=slices))


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/gpu.shared",  # time-slicing with renameByDefault, k8s-device-plugin#321
        "volcano.sh/vgpu-number",  # Project-HAMi/HAMi#1376
        "nvidia.com/GA102GL_A10",  # for virtual machines, NVIDIA/gpu-operator#568
    ],
)
def test_gpus_of_another_name_count_instead(name: str) -> None:
    divided = node("0", "0", **{COUNT: "8"})
    divided.status.allocatable[name] = divided.status.capacity[name] = "56"
    check(cluster_of(divided))
    divided.status.allocatable[name] = "0"
    with pytest.raises(CheckFailed, match="GF792"):
        check(cluster_of(divided))


@pytest.mark.parametrize(
    ("key", "fine"),
    [("sku", True), ("nvidia.com/gpu", False), ("gpufleet/upgrade", False),
     ("node.kubernetes.io/unreachable", False)],
)  # fmt: skip
def test_a_node_behind_a_taint_of_the_user_is_left_out(key: str, fine: bool) -> None:
    """The plan names it (GF809)."""
    taints = [SimpleNamespace(key=key, effect="NoSchedule", value=None)]
    served, tainted = node("8", "8"), node("0", "0")
    tainted.metadata.name, tainted.spec = "gpu-02", SimpleNamespace(taints=taints)
    part = SimpleNamespace(image="nvcr.io/nvidia/k8s-device-plugin:1", command=None)
    plugin = SimpleNamespace(spec=SimpleNamespace(node_name="gpu-01", containers=[part]))
    cluster = cluster_of(served)
    cluster.__dict__.update(nodes=[served, tainted], pods=[plugin])
    if fine:
        return check(cluster)
    with pytest.raises(CheckFailed, match="gpu-02 advertises 0"):
        check(cluster)
    return None


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/hostdev",
        "nvidia.com/mlnx_rdma",
        "nvidia.com/ib_hca",
        "amd.com/gpu",
        "example.com/fpga",
    ],
)
def test_devices_that_are_no_gpus_of_nvidia_do_not_count(name: str) -> None:
    silent = node("0", "0")
    silent.status.allocatable[name] = silent.status.capacity[name] = "8"
    with pytest.raises(CheckFailed, match="GF792"):
        check(cluster_of(silent))


@pytest.mark.parametrize(
    ("found", "slices"),
    [
        (node("0", "0", **{COUNT: "8"}), None),
        (node("7", "8", **{COUNT: "8"}), None),
        (node("7", "7", **{COUNT: "8"}), None),
        (node("8", "8", **{COUNT: "8"}), 4),  # the plugin does not share
    ],
)
def test_gpus_that_are_not_offered_are_found(found: Any, slices: int | None) -> None:
    with pytest.raises(CheckFailed, match="GF792"):
        check(cluster_of(found, device_plugin_time_slicing=slices))
