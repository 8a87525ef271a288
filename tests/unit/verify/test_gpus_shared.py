"""The check that nodes share their GPUs as the keys of their hosts say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpufleet.verify.checks import CheckFailed
from gpufleet.verify.cluster import COUNT, PRESENT, CheckedCluster
from gpufleet.verify.inventory import Target
from gpufleet.verify.sharing import PLUGIN_LABEL, keys_of_nodes
from tests.post_deploy.test_cluster import test_gpus_are_offered as offered
from tests.post_deploy.test_cluster import test_gpus_are_shared as check

GPU, SEVENTH, HALF = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
SLICED = {"gpu_sharing": "time-slicing", "gpu_replicas": 4}
MIXED = {"gpu_mig": "3g.40gb, 1g.10gb:4"}


def cluster_of(
    keys: dict[str, Any],
    config: str | None,
    allocatable: dict[str, str],
    gpus: str | None = "2",
    **data: Any,
) -> CheckedCluster:
    """A cluster with one node; `gpus`: as GFD counted them."""
    labels = {PRESENT[0]: "true", PLUGIN_LABEL: config, COUNT: gpus}
    node = SimpleNamespace(
        metadata=SimpleNamespace(
            name="gpu-01", labels={name: text for name, text in labels.items() if text}
        ),
        status=SimpleNamespace(
            allocatable=allocatable, capacity={GPU: "2", **allocatable}, conditions=[]
        ),
    )
    found = [Target("gpu-01.example.com", ("gpu_nodes",), keys)]
    data = {"device_plugin_enabled": True, **data}
    target = Target("@local", ("gpu_cluster",), data, gpu_keys=keys_of_nodes(found))
    cluster = CheckedCluster(target)
    cluster.__dict__.update(nodes=[node], pods=[])
    cluster.sharing_seconds = 0
    return cluster


@pytest.mark.parametrize(
    ("keys", "config", "allocatable"),
    [
        (SLICED, "time-slicing-4", {GPU: "8"}),
        ({"gpu_sharing": "mps", "gpu_replicas": 2}, "mps-2", {GPU: "4"}),
        ({"gpu_sharing": "none"}, "whole", {GPU: "2"}),
        (MIXED, "mig-mixed", {GPU: "0", HALF: "2", SEVENTH: "8"}),
        ({"gpu_mig": ["3g.40gb", "1g.10gb:4"]}, "mig-mixed", {HALF: "2", SEVENTH: "8"}),
        ({"gpu_mig": {"0": "1g.10gb:7", "all": "off"}}, "mig-mixed", {GPU: "1", SEVENTH: "7"}),
        ({**MIXED, **SLICED}, "mig-mixed-time-slicing-4", {HALF: "8", SEVENTH: "32"}),
    ],
)
def test_nodes_that_are_shared_as_wanted(
    keys: dict[str, Any], config: str, allocatable: dict[str, str]
) -> None:
    cluster = cluster_of(keys, config, allocatable)
    check(cluster)
    offered(cluster)


def test_a_node_with_gpus_of_several_models_is_counted_by_its_host() -> None:
    """NVIDIA/k8s-device-plugin#731: the label counts the GPUs of one model."""
    cluster = cluster_of(SLICED, "time-slicing-4", {GPU: "12"}, "1")
    cluster.count_gpus = lambda name: 3
    check(cluster)
    cluster.count_gpus = lambda name: 4
    with pytest.raises(CheckFailed, match=f"{GPU} 12 instead of 4"):
        check(cluster)


def test_the_strategy_single_counts_devices() -> None:
    keys = {"gpu_mig": "1g.10gb:7", "gpu_mig_strategy": "single"}
    check(cluster_of(keys, "mig-single", {GPU: "14"}, "14"))
    usual = {"gpu_mig": "1g.10gb:7"}
    check(cluster_of(usual, "mig-single", {GPU: "14"}, "14", device_plugin_mig_strategy="single"))


@pytest.mark.parametrize(
    ("keys", "config", "allocatable", "words"),
    [
        (SLICED, None, {GPU: "2"}, "configuration none instead of time-slicing-4"),
        (SLICED, "mine", {GPU: "8"}, "configuration mine instead of time-slicing-4"),
        (SLICED, "time-slicing-4", {GPU: "2"}, f"{GPU} 2 instead of 8"),
        (MIXED, "mig-mixed", {GPU: "2"}, f"{GPU} 2 instead of 0"),
        (MIXED, "mig-mixed", {HALF: "2", SEVENTH: "7"}, f"{SEVENTH} 7 instead of 8"),
        (MIXED, "mig-mixed", {HALF: "2", SEVENTH: "8", "nvidia.com/mig-2g.20gb": "1"},
         "nvidia.com/mig-2g.20gb 1 instead of 0"),
        ({"gpu_sharing": "none"}, "whole", {GPU: "2", SEVENTH: "1"}, f"{SEVENTH} 1 instead of 0"),
    ],
)  # fmt: skip
def test_differences_are_named(
    keys: dict[str, Any], config: str | None, allocatable: dict[str, str], words: str
) -> None:
    with pytest.raises(CheckFailed, match="GF751") as failed:
        check(cluster_of(keys, config, allocatable))
    assert words in str(failed.value)


def test_without_a_count_only_the_label_is_compared() -> None:
    check(cluster_of(SLICED, "time-slicing-4", {GPU: "8"}, None))
    with pytest.raises(CheckFailed, match="no GPUs"):
        check(cluster_of(SLICED, "time-slicing-4", {GPU: "0"}, None))


@pytest.mark.parametrize("keys", [{}, {"gpu_mig": "off"}, {"gpu_power_limit": 300}])
def test_without_keys_the_check_is_skipped(keys: dict[str, Any]) -> None:
    with pytest.raises(pytest.skip.Exception):
        check(cluster_of(keys, None, {GPU: "2"}))


@pytest.mark.parametrize(
    "data",
    [
        {"device_plugin_values": {"config": {"name": "mine"}}},
        {"device_plugin_values": {"migStrategy": "single"}},
        {"device_plugin_enabled": False},
    ],
)
def test_a_layout_alone_says_nothing_about_the_plugin_of_the_user(data: dict[str, Any]) -> None:
    with pytest.raises(pytest.skip.Exception):
        check(cluster_of(MIXED, None, {GPU: "2"}, **data))
