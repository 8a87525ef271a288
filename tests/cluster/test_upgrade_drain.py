"""Nodes are drained by the real API: budgets, DaemonSets, marks; pods are simulated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client

from gpufleet.drain.operations.cluster import ClusterNodes, Round
from gpufleet.drain.pods import Policy
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.upgrade.operations.clusters import owns_driver
from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS, workload

pytestmark = pytest.mark.claim(
    "Drains evict within disruption budgets. Cordons, labels and taints of other users "
    "stay (1.36 and 1.18).",
    level=5,
)

HOST = "h"
GPU = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}


@pytest.fixture
def node(simulated: Cluster) -> Iterator[str]:
    """A simulated node, in service before and after."""
    core: Any = client.CoreV1Api(simulated.api)
    name: str = core.list_node().items[0].metadata.name
    yield name
    core.patch_node(name, {"spec": {"unschedulable": None, "taints": None}})


@pytest.fixture
def nodes(simulated: Cluster, node: str) -> ClusterNodes:
    api = ClusterApi(KubeAccess(str(simulated.kubeconfig)))
    return ClusterNodes(api, "run-1", {HOST: node})


def deployed(simulated: Cluster, namespace: str, node: str, kind: str = "deployment") -> Any:
    """A Deployment or DaemonSet with a pod on the node, which uses a GPU; its pods, by a call."""
    core: Any = client.CoreV1Api(simulated.api)
    apps: Any = client.AppsV1Api(simulated.api)
    body = workload("serve")
    spec = body["spec"]["template"]["spec"]
    spec["containers"][0] |= GPU
    spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [node]}]}]}}}  # fmt: skip
    spec["tolerations"] = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    getattr(apps, f"create_namespaced_{kind.replace('-', '_')}")(namespace, body)

    def there() -> list[str]:
        pods = core.list_namespaced_pod(namespace, label_selector="app=serve").items
        return [pod.metadata.name for pod in pods if pod.spec.node_name == node]

    def running() -> bool:
        pods = core.list_namespaced_pod(namespace, label_selector="app=serve").items
        return bool(pods) and all(pod.status.phase == "Running" for pod in pods)

    assert wait_until(running, SECONDS)
    return there


def drained(nodes: ClusterNodes, rounds: list[Round]) -> bool:
    rounds.append(nodes.drain({HOST: Policy()})[HOST])
    return rounds[-1].drained


def test_a_node_is_drained_and_returned_as_it_was(
    simulated: Cluster, namespace: str, node: str, nodes: ClusterNodes
) -> None:
    core: Any = client.CoreV1Api(simulated.api)
    before = core.read_node(node)
    there = deployed(simulated, namespace, node)
    assert there()
    rounds: list[Round] = []
    assert wait_until(lambda: drained(nodes, rounds), SECONDS)
    assert not there()
    marked = core.read_node(node)
    assert marked.spec.unschedulable
    assert "gpufleet/upgrade" in marked.metadata.annotations
    nodes.give_back(HOST)
    # Kubernetes' own controller follows the cordon with a taint, and takes it away again
    assert wait_until(lambda: core.read_node(node).spec.taints == before.spec.taints, SECONDS)
    after = core.read_node(node)
    assert after.spec.unschedulable == before.spec.unschedulable
    assert after.metadata.annotations == before.metadata.annotations
    assert after.metadata.labels == before.metadata.labels


def test_a_budget_is_kept_and_named(
    simulated: Cluster, namespace: str, node: str, nodes: ClusterNodes
) -> None:
    there = deployed(simulated, namespace, node)
    policy: Any = client.CustomObjectsApi(simulated.api)
    version = "v1" if nodes.api.find("/apis/policy/v1") else "v1beta1"
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "serve"}}}
    body = {"apiVersion": f"policy/{version}", "kind": "PodDisruptionBudget"}
    body |= {"metadata": {"name": "serve"}, "spec": budget}
    policy.create_namespaced_custom_object(
        "policy", version, namespace, "poddisruptionbudgets", body
    )
    found = Round()

    def named() -> bool:
        nonlocal found
        found = nodes.drain({HOST: Policy()})[HOST]
        return any("serve needs 1 healthy pods" in reason for reason in found.reasons)

    assert wait_until(named, SECONDS), found
    assert not found.drained
    assert not found.given_up
    assert there()
    nodes.give_back(HOST)


@pytest.mark.extended
def test_clients_of_a_daemonset_stay_away_until_the_taint_is_gone(
    simulated: Cluster, namespace: str, node: str, nodes: ClusterNodes
) -> None:
    there = deployed(simulated, namespace, node, "daemon_set")
    rounds: list[Round] = []
    assert wait_until(lambda: drained(nodes, rounds), SECONDS)
    assert nodes.clear(HOST, Policy()).drained
    assert not there()
    core: Any = client.CoreV1Api(simulated.api)
    assert "gpufleet/upgrade" in [taint.key for taint in core.read_node(node).spec.taints]
    nodes.give_back(HOST)
    assert wait_until(there, SECONDS)


@pytest.mark.extended
def test_a_node_that_another_user_uncordons_is_given_up(
    simulated: Cluster, namespace: str, node: str, nodes: ClusterNodes
) -> None:
    deployed(simulated, namespace, node)
    assert not nodes.drain({HOST: Policy()})[HOST].given_up
    core: Any = client.CoreV1Api(simulated.api)
    core.patch_node(node, {"spec": {"unschedulable": False}})
    assert "uncordoned" in nodes.drain({HOST: Policy()})[HOST].given_up
    nodes.give_back(HOST)
    assert "gpufleet/upgrade" not in (core.read_node(node).metadata.annotations or {})


@pytest.mark.extended
def test_a_cluster_without_the_operator_owns_no_driver(nodes: ClusterNodes) -> None:
    assert not owns_driver(nodes.api)
