"""Faults of nodes and of their cluster while a driver is changed, each on real nodes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client
from upgrade_site import (
    CONTROL,
    NEW,
    OLD,
    OTHER,
    SECOND,
    SECONDS,
    Nodes,
    clear,
    older_nodes,
    on,
    serve,
    template,
)
from upgrading import break_unit, repair_unit

from gpufleet_sandbox import Sandbox
from gpufleet_sandbox.waiting import wait_until

pytestmark = [
    pytest.mark.hosts,
    pytest.mark.extended,
    pytest.mark.claim("An upgrade meets faults of nodes and of the API.", level=3),
]

START = ("start", "--to", NEW, "--yes", "--limit", SECOND)
API_MANIFEST = "/etc/kubernetes/manifests/kube-apiserver.yaml"
AWAY = 20  # seconds
SKIP = "nvidia.com/gpu-driver-upgrade.skip"
STAYS = "nvidia.com/gpu-driver-upgrade-drain.skip"

POLICIES: dict[str, Any] = {
    "metadata": {"name": "clusterpolicies.nvidia.com"},
    "spec": {
        "group": "nvidia.com", "scope": "Cluster",
        "names": {"plural": "clusterpolicies", "kind": "ClusterPolicy"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(
    worker_id: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Sandbox, Path]]:
    with older_nodes(f"node-faults-{worker_id}", tmp_path_factory.mktemp("faults")) as found:
        yield found


@pytest.fixture
def nodes(cluster: tuple[Sandbox, Path], tmp_path: Path) -> Iterator[Nodes]:
    box, charts = cluster
    found = Nodes([], tmp_path, box=box, charts=charts)
    yield found
    clear(found)


def passed_over(nodes: Nodes, reason: str) -> None:
    """The node was given up for that reason, and is in service as before."""
    assert nodes.states() == {SECOND: "passed"}
    assert reason in nodes.reason(SECOND)
    nodes.assert_in_service(SECOND, OLD)


def start_pod(nodes: Nodes, **labels: str) -> None:
    """A pod with a GPU and without a controller."""
    body = template("bare", "sleep 100000", nodeSelector=on(SECOND))
    body["metadata"] = {"name": "bare", "labels": {"app": "bare", **labels}}
    nodes.core.create_namespaced_pod("default", body)
    assert wait_until(lambda: nodes.ready("bare") == 1, SECONDS)


def start_job(nodes: Nodes) -> None:
    """A Job that does not end."""
    pod = template("train", "sleep 100000", restartPolicy="Never", nodeSelector=on(SECOND))
    body = {"metadata": {"name": "train"}, "spec": {"backoffLimit": 0, "template": pod}}
    nodes.batch.create_namespaced_job("default", body)
    assert wait_until(lambda: nodes.ready("train") == 1, SECONDS)


def pod_of(nodes: Nodes, app: str) -> str:
    [pod] = nodes.core.list_namespaced_pod("default", label_selector=f"app={app}").items
    uid: str = pod.metadata.uid
    return uid


def test_a_pod_without_a_controller_is_not_ended(nodes: Nodes) -> None:
    start_pod(nodes)
    before = pod_of(nodes, "bare")
    nodes.data = {"upgrade_wait": 15}
    assert nodes.run(*START).returncode == 1
    passed_over(nodes, "it has no controller")
    assert (pod_of(nodes, "bare"), nodes.ready("bare")) == (before, 1)


def test_a_job_that_does_not_end_is_not_ended(nodes: Nodes) -> None:
    start_job(nodes)
    before = pod_of(nodes, "train")
    nodes.data = {"upgrade_wait": 15}
    assert nodes.run(*START).returncode == 1
    passed_over(nodes, "upgrade_jobs")
    assert (pod_of(nodes, "train"), nodes.ready("train")) == (before, 1)


def test_a_pod_that_is_to_stay_is_not_ended(nodes: Nodes) -> None:
    start_pod(nodes, **{STAYS: "true"})
    nodes.data = {"upgrade_wait": 15, "upgrade_evict_unmanaged": True}
    assert nodes.run(*START).returncode == 1
    passed_over(nodes, STAYS)
    assert nodes.ready("bare") == 1


def test_overlapping_budgets_are_named(nodes: Nodes) -> None:
    serve(nodes, 1, 0, nodeSelector=on(SECOND))
    second: Any = {"metadata": {"name": "second"}, "spec": {
        "minAvailable": 0, "selector": {"matchLabels": {"app": "serve"}}}}  # fmt: skip
    nodes.policy.create_namespaced_pod_disruption_budget("default", second)
    nodes.data = {"upgrade_wait": 15}
    assert nodes.run(*START).returncode == 1
    passed_over(nodes, "more than one")
    assert nodes.ready("serve") == 1


def test_a_node_with_the_label_skip_is_left_out(nodes: Nodes) -> None:
    nodes.core.patch_node(SECOND, {"metadata": {"labels": {SKIP: "true"}}})
    try:
        shown = nodes.run("start", "--to", NEW, "--plan", "--limit", SECOND)
    finally:
        nodes.core.patch_node(SECOND, {"metadata": {"labels": {SKIP: None}}})
    assert f"left out: {SECOND}" in shown.stdout
    assert SKIP in shown.stdout


def test_nodes_whose_driver_the_operator_installs_are_left_out(nodes: Nodes) -> None:
    """A ClusterPolicy alone says so: the operator itself is not in the cluster."""
    api = nodes.core.api_client
    extensions: Any = client.ApiextensionsV1Api(api)
    objects: Any = client.CustomObjectsApi(api)
    extensions.create_custom_resource_definition(POLICIES)
    try:
        body = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy"}
        body |= {"metadata": {"name": "cluster-policy"}, "spec": {"driver": {"enabled": True}}}
        assert wait_until(lambda: created(objects, body), SECONDS)
        shown = nodes.run("start", "--to", NEW, "--plan", "--limit", SECOND)
    finally:
        extensions.delete_custom_resource_definition(POLICIES["metadata"]["name"])
    assert f"left out: {SECOND}" in shown.stdout
    assert "GF070" in shown.stdout


def created(objects: Any, body: dict[str, Any]) -> bool:
    """Whether the object could be created. The API server serves a kind shortly after its CRD
    exists."""
    try:
        objects.create_cluster_custom_object("nvidia.com", "v1", "clusterpolicies", body)
    except client.ApiException as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return False
        if error.status != HTTPStatus.CONFLICT:
            raise
    return True


def test_a_node_that_another_user_returns_is_given_up(nodes: Nodes) -> None:
    start_job(nodes)

    def uncordon() -> None:
        assert wait_until(lambda: nodes.core.read_node(SECOND).spec.unschedulable, SECONDS)
        nodes.core.patch_node(SECOND, {"spec": {"unschedulable": None}})

    waiting = nodes.at(SECOND, "draining", uncordon)
    done = nodes.run(*START)
    waiting.join(1)
    assert done.returncode == 1, done.stdout
    passed_over(nodes, "uncordoned")
    assert nodes.ready("train") == 1


def test_another_controller_is_refused(nodes: Nodes, tmp_path: Path) -> None:
    """The other controller has a separate log folder, so only hosts and cluster show the first
    run."""
    start_job(nodes)
    other = Nodes([], tmp_path / "other", box=nodes.box, charts=nodes.charts)
    other.folder.mkdir()
    seen: list[str] = []
    waiting = nodes.at(SECOND, "draining", lambda: seen.append(other.run(*START).stdout))
    done = nodes.interrupted(
        "draining", lambda run: (waiting.join(SECONDS), run.terminate()), *START
    )
    assert done.returncode == 143, done.stdout
    assert nodes.run("abort", "--yes").returncode == 0
    [text] = seen
    assert "drained" not in text
    assert "GF" in text
    passed_over(nodes, "abort")


@pytest.mark.parametrize("event", ["draining", "changing", "done", "restoring"])
def test_an_api_server_that_is_away_is_waited_for(nodes: Nodes, event: str) -> None:
    control = nodes.host(CONTROL)
    back = f"mv /root/kube-apiserver.yaml {API_MANIFEST}"

    def away() -> None:
        control.run(f"mv {API_MANIFEST} /root/")
        threading.Timer(AWAY, control.run, (back,)).start()

    canary = nodes.host(SECOND)
    fails = event == "restoring"
    canary.set_fault("dkms-failure", fails)
    waiting = nodes.at(SECOND, event, away)
    try:
        repair = nodes.at(SECOND, "restoring", lambda: canary.set_fault("dkms-failure", False))
        done = nodes.run(*START)
        waiting.join(1)
        assert not waiting.is_alive(), done.stdout
    finally:
        canary.set_fault("dkms-failure", False)
    assert wait_until(lambda: answers(nodes), SECONDS)
    if fails:
        repair.join(1)
        assert nodes.states() == {SECOND: "reverted"}, done.stdout
    else:
        assert done.returncode == 0, done.stdout
        nodes.assert_in_service(SECOND, NEW)
        assert nodes.run("rollback", "--yes").returncode == 0
    nodes.assert_in_service(SECOND, OLD)


def answers(nodes: Nodes) -> bool:
    """Whether the API server is back."""
    try:
        nodes.core.read_node(SECOND)
    except (client.ApiException, OSError) as error:
        print(error)
        return False
    except Exception as error:  # urllib3's, of a server that is starting
        if type(error).__module__.startswith("urllib3"):
            return False
        raise
    return True


def test_a_kubelet_that_does_not_come_back_reverts_the_node(nodes: Nodes) -> None:
    canary = nodes.host(SECOND)
    nodes.data = {"upgrade_node_timeout": 30}
    began = nodes.at(SECOND, "changing", lambda: break_unit(canary, "kubelet"))
    failed = nodes.at(SECOND, "restoring", lambda: repair_unit(canary, "kubelet"))
    try:
        done = nodes.run(*START)
        began.join(1)
        failed.join(1)
    finally:
        repair_unit(canary, "kubelet")
    assert done.returncode == 1, done.stdout
    assert nodes.states() == {SECOND: "reverted"}, done.stdout
    nodes.assert_in_service(SECOND, OLD)


def test_a_node_that_is_deleted_is_given_up(nodes: Nodes) -> None:
    """The last: the node has to join again."""
    pod = template("train", "sleep 100000", restartPolicy="Never", nodeSelector=on(OTHER))
    body = {"metadata": {"name": "train"}, "spec": {"backoffLimit": 0, "template": pod}}
    nodes.batch.create_namespaced_job("default", body)
    assert wait_until(lambda: nodes.ready("train") == 1, SECONDS)
    waiting = nodes.at(OTHER, "draining", lambda: nodes.core.delete_node(OTHER))
    done = nodes.run("start", "--to", NEW, "--yes", "--limit", OTHER)
    waiting.join(1)
    assert done.returncode == 1, done.stdout
    assert nodes.states() == {OTHER: "passed"}
    assert "not in the cluster any more" in nodes.reason(OTHER)
