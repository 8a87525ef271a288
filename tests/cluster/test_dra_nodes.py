"""The DRA driver on a real API server: nodes move to it, are verified, and move back."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

from gpufleet_sandbox.waiting import wait_until
from tests.cluster.stacking import Bench

LABEL = "gpufleet/dra-driver"
PLUGIN, DRIVER = "nvidia-device-plugin", "dra-driver-nvidia-gpu"
SLICES = ("resource.k8s.io", "v1", "resourceslices")
CLAIMED = {"gpu_sharing": "dra"}
NO_MONITORING: dict[str, Any] = {"monitoring_enabled": False}
SECONDS = 60


def gpu_nodes(bench: Bench) -> list[str]:
    nodes = bench.core.list_node().items
    return [node.metadata.name for node in nodes if "nvidia.com/gpu" in node.status.capacity]


def labelled(bench: Bench) -> list[str]:
    found = bench.core.list_node(label_selector=f"{LABEL}=true").items
    return [node.metadata.name for node in found]


def nodes_with(bench: Bench, daemonset: str) -> set[str]:
    """The nodes with a pod of a DaemonSet that does not end."""
    return {
        pod.spec.node_name
        for pod in bench.core.list_pod_for_all_namespaces().items
        if any(owner.name == daemonset for owner in pod.metadata.owner_references or ())
        and not pod.metadata.deletion_timestamp
    }


def publish(bench: Bench, node: str, gpus: int) -> None:
    """What the driver of a real node publishes."""
    kinds = {"type": {"string": "gpu"}}
    devices = [
        {"name": f"gpu-{number}", "attributes": {**kinds, "uuid": {"string": f"GPU-{number}"}}}
        for number in range(gpus)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-slice"},
        "spec": {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": devices},
    }
    client.CustomObjectsApi(bench.cluster.api).create_cluster_custom_object(*SLICES, body)


@pytest.mark.extended
@pytest.mark.claim(
    'Nodes with gpu_sharing = "dra" get NVIDIA\'s DRA driver instead of the device plugin; without '
    "the key the plugin returns.",
    level=5,
)
def test_a_node_moves_to_the_dra_driver_and_back(current: Bench) -> None:
    every = {*gpu_nodes(current)}
    first = min(every)
    current.nodes = {first: CLAIMED}
    preview = current.deploy(deploy="preflight", **NO_MONITORING)
    assert f"Offer the GPUs of {first} by the DRA driver" in " ".join(preview.output.split())
    assert labelled(current) == []
    done = current.deploy(**NO_MONITORING)
    assert done.returncode == 0, done.output
    assert (labelled(current), current.releases()[DRIVER]) == ([first], "deployed")
    assert wait_until(lambda: nodes_with(current, f"{DRIVER}-kubelet-plugin") == {first}, SECONDS)
    assert wait_until(lambda: nodes_with(current, PLUGIN) == every - {first}, SECONDS)
    again = current.deploy(**NO_MONITORING)
    assert again.report["changed"] == 0, again.output

    check = "gpus_can_be_claimed"
    assert current.verify(check, **NO_MONITORING)[check]["code"] == "GF752"
    publish(current, first, 8)
    assert (
        "advertises nvidia.com/gpu, too" in current.verify(check, **NO_MONITORING)[check]["message"]
    )
    no_gpus = {"status": {"allocatable": {"nvidia.com/gpu": "0"}}}  # as the kubelet says it
    current.core.patch_node_status(first, no_gpus)
    assert current.verify(check, **NO_MONITORING)[check]["outcome"] == "passed"
    plugin = "plugin_on_every_gpu_node"
    assert current.verify(plugin, **NO_MONITORING)[plugin]["outcome"] == "passed"

    current.nodes = {first: {}}
    back = current.deploy(**NO_MONITORING)
    assert (back.returncode, "GF971" in back.codes) == (0, True), back.output
    assert labelled(current) == []
    assert wait_until(lambda: nodes_with(current, PLUGIN) == every, SECONDS)
    assert wait_until(lambda: nodes_with(current, f"{DRIVER}-kubelet-plugin") == set(), SECONDS)


@pytest.mark.extended
def test_all_nodes_move_to_the_dra_driver_and_back(current: Bench) -> None:
    every = gpu_nodes(current)
    current.nodes = dict.fromkeys(every, CLAIMED)
    done = current.deploy(**NO_MONITORING)
    assert done.returncode == 0, done.output
    assert sorted(labelled(current)) == sorted(every)
    assert wait_until(lambda: nodes_with(current, PLUGIN) == set(), SECONDS)
    again = current.deploy(**NO_MONITORING)
    assert (again.report["changed"], "GF838" in again.codes) == (0, False), again.output
    current.nodes = {name: {} for name in every}
    back = current.deploy(**NO_MONITORING)
    assert back.returncode == 0, back.output
    assert labelled(current) == []
    assert wait_until(lambda: nodes_with(current, PLUGIN) == {*every}, SECONDS)


@pytest.mark.extended
def test_a_node_with_a_claim_stays_with_its_driver(current: Bench) -> None:
    node = min(gpu_nodes(current))
    current.nodes = {node: CLAIMED}
    assert current.deploy(**NO_MONITORING).returncode == 0
    spec = {
        "nodeName": node,
        "containers": [{"name": "x", "image": "example.invalid/x"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "absent"}],
    }
    current.core.create_namespaced_pod("default", {"metadata": {"name": "claims"}, "spec": spec})
    for deploy, keys, code in (("gpu_cluster", {}, "GF976"), ("remove", CLAIMED, "GF970")):
        current.nodes = {node: keys}
        refused = current.deploy(deploy=deploy, **NO_MONITORING)
        assert (refused.returncode != 0, code in refused.codes) == (True, True), refused.output
        assert labelled(current) == [node]
    current.core.delete_namespaced_pod("claims", "default", grace_period_seconds=0)
    done = current.deploy(deploy="remove", **NO_MONITORING)
    assert done.returncode == 0, done.output
    assert (labelled(current), DRIVER in current.releases()) == ([], False)
