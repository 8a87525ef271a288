"""Responses of a cluster's API as what gpufleet created there, and who uses it."""

from __future__ import annotations

from typing import Any

import pytest

from gpufleet.gpu_stack.model import NODE_MARK
from gpufleet.gpu_stack.remains import (
    Leaving,
    gpu_pods,
    is_automatic,
    is_leaving,
    marked_nodes,
    owned,
    runtime_classes,
    some,
    users_of,
)
from gpufleet.kube.facts import ObjectRef, ReleaseRef
from gpufleet.kube.objects import OURS
from gpufleet.kube.parse import RELEASE_NAME, RELEASE_NAMESPACE

STACK = ReleaseRef("monitoring", "stack")
OF_STACK = {RELEASE_NAME: "stack", RELEASE_NAMESPACE: "monitoring"}


def item(name: str = "one", **about: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team", **about}}


def pod(resource: str = "", count: str = "1", phase: str = "Running", **spec: Any) -> Any:
    limits = {resource: count} if resource else {}
    made = {"nodeName": "n", "containers": [{"resources": {"limits": limits}}], **spec}
    return {**item("pod"), "spec": made, "status": {"phase": phase}}


def test_objects_are_gpufleets_by_their_label() -> None:
    items = [item("a", labels=OURS), item("b"), item("c", labels={**OURS, "x": "y"})]
    found = owned("ConfigMap", "/api/v1/namespaces/team/configmaps", items)
    assert [one.path for one in found] == [
        "/api/v1/namespaces/team/configmaps/a",
        "/api/v1/namespaces/team/configmaps/c",
    ]
    assert found[0].ref == ObjectRef("ConfigMap", "team", "a")


FEATURES = frozenset({"nfd.k8s-sigs.io"})
LEAVING = Leaving(
    (STACK,),
    {"ClusterPolicy.nvidia.com": frozenset({""}), "Pod": FEATURES, "DaemonSet.apps": FEATURES},
)
NODE_FEATURES = "nodefeatures.nfd.k8s-sigs.io"
MONITORS = "servicemonitors.monitoring.coreos.com"
POLICY = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy"}
POD = {"apiVersion": "v1", "kind": "Pod"}
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet"}


def test_users_of_a_crd_are_neither_gpufleet_nor_its_releases() -> None:
    items = [
        item("ours", labels=OURS),
        item("release", annotations=OF_STACK),
        item("going", deletionTimestamp="2026-01-01T00:00:00Z"),
        item("other", annotations={**OF_STACK, RELEASE_NAME: "theirs"}),
        item("theirs"),
    ]
    assert [ref.name for ref in users_of(MONITORS, "Rule", items, LEAVING)] == ["other", "theirs"]


@pytest.mark.parametrize(
    ("owners", "space", "users"),
    [
        ([POLICY], "monitoring", False),
        ([POLICY], "team", True),  # of an operator that gpufleet did not install
        ([DAEMON_SET], "monitoring", True),
        ([{"apiVersion": "v1", "kind": "Service"}], "monitoring", True),
        ([{"apiVersion": "apps/v1", "kind": "Deployment"}], "monitoring", True),
        ([{"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster"}], "monitoring", True),
        ([{"apiVersion": "example.com/v1", "kind": "ClusterPolicy"}], "monitoring", True),
        ([{"apiVersion": "example.com/v1", "kind": "Pod"}], "monitoring", True),
        ([POLICY, {"apiVersion": "v1", "kind": "Service"}], "monitoring", True),
        ([{}], "monitoring", True),
    ],
)
def test_objects_that_a_users_operator_owns_are_users(
    owners: list[Any], space: str, users: bool
) -> None:
    found = item(ownerReferences=owners, namespace=space)
    assert bool(users_of(MONITORS, "ServiceMonitor", [found], LEAVING)) is users


@pytest.mark.parametrize(("space", "users"), [("monitoring", False), ("team", True)])
def test_features_of_nodes_go_with_their_worker(space: str, users: bool) -> None:
    found = item(ownerReferences=[POD, DAEMON_SET], namespace=space)
    assert bool(users_of(NODE_FEATURES, "NodeFeature", [found], LEAVING)) is users


def test_only_nodes_that_gpufleet_labelled_are_found() -> None:
    nodes = [item("a", annotations={NODE_MARK: "x/y"}), item("b", labels={"x/y": "true"})]
    assert marked_nodes(nodes) == {"a": "x/y"}


@pytest.mark.parametrize(
    ("found", "uses"),
    [
        (pod("nvidia.com/gpu"), True),
        (pod("nvidia.com/gpu.shared"), True),
        (pod("nvidia.com/mig-1g.10gb"), True),
        (pod("nvidia.com/gpu", "0"), False),
        (pod("nvidia.com/gpufoo"), False),
        (pod("nvidia.com/rdma"), False),
        (pod("cpu"), False),
        (pod(), False),
        (pod("nvidia.com/gpu", phase="Pending"), True),  # it is on its node already
        (pod("nvidia.com/gpu", nodeName=None), False),
        (pod("nvidia.com/gpu", phase="Succeeded"), False),
        (pod("nvidia.com/gpu", phase="Failed"), False),
    ],
)
def test_pods_have_gpus_of_any_form_until_they_end(found: Any, uses: bool) -> None:
    assert bool(gpu_pods([found], "nvidia.com/gpu")) is uses


def test_a_gpu_of_an_init_container_counts() -> None:
    init = [{"resources": {"limits": {"nvidia.com/gpu": 1}}}]
    assert gpu_pods([pod(initContainers=init)], "nvidia.com/gpu")


def test_pods_that_select_a_runtime_class_have_their_owner() -> None:
    chosen = pod(runtimeClassName="nvidia")
    chosen["metadata"]["ownerReferences"] = [
        {"kind": "Node", "name": "n"},
        {"kind": "DaemonSet", "name": "plugin", "controller": True},
    ]
    ended = pod(runtimeClassName="nvidia", phase="Succeeded")
    found = runtime_classes([chosen, ended, pod()])
    assert [one.owner for one in found["nvidia"]] == [ObjectRef("DaemonSet", "team", "plugin")]
    assert set(found) == {"nvidia"}


TOKEN = "kubernetes.io/service-account.name"


@pytest.mark.parametrize(
    ("kind", "found", "automatic"),
    [
        ("ConfigMap", item("kube-root-ca.crt"), True),
        ("ConfigMap", item("mine"), False),
        ("ServiceAccount", item("default"), True),
        ("ServiceAccount", item("mine"), False),
        ("Secret", item("default-token-x", annotations={TOKEN: "default"}), True),
        ("Secret", item("mine-token-x", annotations={TOKEN: "mine"}), False),
        ("Event", item("x.1"), True),
        ("Lease", item("leader"), True),
        ("PersistentVolumeClaim", item("data"), False),
        ("Secret", item("default"), False),
    ],
)
def test_a_namespace_is_empty_with_what_kubernetes_creates(
    kind: str, found: Any, automatic: bool
) -> None:
    assert is_automatic(kind, found) is automatic


def test_objects_that_go_by_themselves_are_leaving() -> None:
    assert not is_leaving(item())
    assert is_leaving(item(deletionTimestamp="2026-01-01T00:00:00Z"))
    assert is_leaving(item(ownerReferences=[{"kind": "Prometheus"}]))
    assert is_leaving(item(annotations={TOKEN: "prometheus"}))


def test_long_lists_are_shortened() -> None:
    assert some(["a", "b", "c"], 2) == "a, b and 1 more"
    assert some(["a", "b"], 2) == "a, b"
