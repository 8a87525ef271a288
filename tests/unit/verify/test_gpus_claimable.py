"""The check that the DRA driver offers the GPUs of nodes with gpu_sharing = "dra"."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.verify.checks import CheckFailed
from gpufleet.verify.cluster import PRESENT, CheckedCluster
from gpufleet.verify.dra import NODE_LABEL
from gpufleet.verify.inventory import Target
from gpufleet.verify.sharing import keys_of_nodes
from tests.post_deploy.test_cluster import test_gpus_are_offered as offered
from tests.post_deploy.test_cluster import test_gpus_are_shared as shared
from tests.post_deploy.test_cluster import test_gpus_can_be_claimed as check
from tests.post_deploy.test_cluster import test_plugin_on_every_gpu_node as plugin_runs

CLAIMED = {"gpu_sharing": "dra"}
SEVENTHS = {**CLAIMED, "gpu_mig": "1g.10gb:7"}


def device(kind: str, uuid: str, parent: str = "") -> dict[str, Any]:
    texts = {"type": kind, "uuid": uuid, "parentUUID": parent}
    return {"name": uuid, "attributes": {key: {"string": text} for key, text in texts.items()}}


def whole(*numbers: int) -> list[dict[str, Any]]:
    return [device("gpu", f"GPU-{number}") for number in numbers]


def parts(gpu: int, count: int) -> list[dict[str, Any]]:
    return [device("mig", f"MIG-{gpu}-{number}", f"GPU-{gpu}") for number in range(count)]


def piece(devices: list[dict[str, Any]], generation: int = 1, **spec: Any) -> dict[str, Any]:
    """A ResourceSlice of the node."""
    about = {"driver": "gpu.nvidia.com", "nodeName": "gpu-01", **spec}
    return {"spec": {**about, "pool": {"generation": generation}, "devices": devices}}


def cluster_of(
    keys: dict[str, Any], *slices: dict[str, Any], label: str | None = "true", gpus: int | None = 2
) -> CheckedCluster:
    """A cluster with one node; `gpus`: of its host."""
    labels = {PRESENT[0]: "true", **({NODE_LABEL: label} if label else {})}
    gone = {"nvidia.com/gpu": "0"}
    node = SimpleNamespace(
        metadata=SimpleNamespace(name="gpu-01", labels=labels),
        status=SimpleNamespace(allocatable=gone, capacity=gone, conditions=[]),
        spec=SimpleNamespace(taints=[]),
    )
    found = [Target("gpu-01.example.com", ("gpu_nodes",), keys)]
    data = {"device_plugin_enabled": True}
    target = Target("@local", ("gpu_cluster",), data, gpu_keys=keys_of_nodes(found))
    cluster = CheckedCluster(target, {"gpu-01": gpus}.get)
    cluster.__dict__.update(nodes=[node], pods=[], custom=lambda kind: [*slices])
    return cluster


@pytest.mark.parametrize(
    ("keys", "slices", "gpus"),
    [
        (CLAIMED, [piece(whole(0, 1))], 2),
        (CLAIMED, [piece(whole(0)), piece(whole(1))], 2),
        (CLAIMED, [piece(whole(0), 1), piece(whole(0, 1), 2)], 2),
        (CLAIMED, [piece(whole(0)), piece(whole(1), nodeName="gpu-02")], 1),
        (CLAIMED, [piece([*whole(0, 1), *parts(0, 7), device("vfio", "x")])], 2),
        (SEVENTHS, [piece([*parts(0, 7), *parts(1, 7)])], 2),
        (CLAIMED, [piece(whole(0))], None),
    ],
)
def test_nodes_whose_gpus_can_be_claimed(
    keys: dict[str, Any], slices: list[dict[str, Any]], gpus: int | None
) -> None:
    check(cluster_of(keys, *slices, gpus=gpus))


@pytest.mark.parametrize(
    ("keys", "slices", "words"),
    [
        (CLAIMED, [], "no ResourceSlice"),
        (CLAIMED, [piece([])], "no ResourceSlice"),
        (CLAIMED, [piece(whole(0, 1), driver="compute-domain.nvidia.com")], "no ResourceSlice"),
        (CLAIMED, [piece(whole(0))], "1 instead of 2"),
        (CLAIMED, [piece(whole(0, 1), 1), piece(whole(0), 2)], "1 instead of 2"),
        (CLAIMED, [piece([device("vfio", "x")])], "0 instead of 2"),
        (SEVENTHS, [piece(whole(0, 1))], "0 MIG devices are offered instead of 14"),
        (CLAIMED, [{"spec": None}, {}], "no ResourceSlice"),
    ],
)
def test_gpus_that_are_missing_are_named(
    keys: dict[str, Any], slices: list[dict[str, Any]], words: str
) -> None:
    with pytest.raises(CheckFailed, match="GF752") as failed:
        check(cluster_of(keys, *slices))
    assert words in str(failed.value)


def test_gpus_that_a_device_plugin_advertises_too_are_named() -> None:
    cluster = cluster_of(CLAIMED, piece(whole(0, 1)))
    [node] = cluster.nodes
    node.status.allocatable = {"nvidia.com/gpu": "2"}
    with pytest.raises(CheckFailed, match=r"advertises nvidia\.com/gpu, too"):
        check(cluster)


@pytest.mark.parametrize("label", [None, "false"])
def test_the_label_of_the_driver_is_needed(label: str | None) -> None:
    with pytest.raises(CheckFailed, match=NODE_LABEL):
        check(cluster_of(CLAIMED, piece(whole(0, 1)), label=label))


def test_without_such_a_node_the_check_is_skipped() -> None:
    with pytest.raises(pytest.skip.Exception):
        check(cluster_of({"gpu_sharing": "none"}, piece(whole(0, 1))))


@pytest.mark.parametrize("keys", [CLAIMED, SEVENTHS])
def test_the_plugin_is_not_expected_there(keys: dict[str, Any]) -> None:
    cluster = cluster_of(keys, piece(whole(0, 1)))
    offered(cluster)
    plugin_runs(cluster)
    with pytest.raises(pytest.skip.Exception):
        shared(cluster)
