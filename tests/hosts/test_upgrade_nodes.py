"""The driver of nodes is changed under work: real kubelets, pods, budgets, Jobs and evictions."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cluster_site import Api, bare_hosts
from driver_state import loaded
from upgrading import Fleet

from gpufleet_sandbox import Host, Sandbox
from gpufleet_sandbox.kubernetes.images import GPU_PROBE
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.fake_charts import write_charts
from tests.naming import RUN

pytestmark = [pytest.mark.hosts, pytest.mark.extended]

CONTROL, SECOND, OTHER = "ubuntu2404", "ubuntu2404-2", "debian12"  # H100, H100, L40S
OLD, NEW = "580.178.04", "595.91.07"
SECONDS, KILLS, SEED = 300, 5, 20261126
MARKS = ("gpufleet/upgrade", "ManagedByNVSentinel", "scale-down-disabled")
INVENTORY = """\
import json

from gpufleet_sandbox.inventory import cluster_data, group_data, nodes, stack_data
from gpufleet_sandbox.kubernetes.cluster import KINDS as _kinds

_data = {{**group_data(), **cluster_data({box!r}), "kubernetes_control_plane_pods": True}}
_nodes = [node for node in nodes({box!r}) if node[0].partition("-")[0] in _kinds]
gpu_nodes = (_nodes, {{**_data, **json.loads({data!r})}})
control_plane = [_nodes[0]]
gpu_cluster = (["@local"], stack_data({box!r}, {charts!r}))
"""


@dataclass
class Nodes(Api, Fleet):
    """The nodes of one cluster."""

    box: Sandbox = field(kw_only=True)
    charts: Path = field(kw_only=True)

    def inventory(self) -> str:
        file = self.folder / "inventory.py"
        data = {"node_reboot": "if_needed", "upgrade_drain": "gpu", "upgrade_soak": 0}
        data |= {"upgrade_gpu_image": GPU_PROBE, "upgrade_wait": SECONDS}
        data |= {"driver_version": OLD, **self.data}
        about = {"box": self.box.name, "charts": str(self.charts), "data": json.dumps(data)}
        file.write_text(INVENTORY.format(**about))
        return str(file)

    def host(self, name: str) -> Host:
        return self.box.host(name)

    def ready(self, name: str) -> int:
        """Ready pods of an app."""
        pods = self.core.list_namespaced_pod("default", label_selector=f"app={name}").items
        return sum(
            condition.type == "Ready" and condition.status == "True"
            for pod in pods
            for condition in pod.status.conditions or ()
            if pod.metadata.deletion_timestamp is None
        )

    def assert_in_service(self, name: str, version: str) -> None:
        """A node without a trace of a run, with its GPU and its plugin."""
        assert loaded(self.host(name)) == version
        node = self.core.read_node(name)
        assert not node.spec.unschedulable
        assert not node.spec.taints
        shown = [*(node.metadata.annotations or {}), *(node.metadata.labels or {})]
        assert not [key for key in shown if any(mark in key for mark in MARKS)]
        assert node.status.allocatable["nvidia.com/gpu"] == "1"
        pods = self.core.list_namespaced_pod("default").items
        assert not [pod for pod in pods if pod.status.phase == "Failed"]


@pytest.fixture(scope="module")
def cluster(
    worker_id: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Sandbox, Path]]:
    """Three nodes with the older driver."""
    folder = tmp_path_factory.mktemp("upgrade")
    write_charts(folder / "charts")
    with bare_hosts(f"{RUN}-upgrade-{worker_id}", {CONTROL: 2, OTHER: 1}) as box:
        nodes = Nodes([], folder, box=box, charts=folder / "charts")
        done = nodes.gpufleet("cluster", "create", nodes.inventory(), "--yes")
        assert done.returncode == 0, done.stdout
        yield box, folder / "charts"


@pytest.fixture
def nodes(cluster: tuple[Sandbox, Path], tmp_path: Path) -> Iterator[Nodes]:
    box, charts = cluster
    found = Nodes([], tmp_path, box=box, charts=charts)
    yield found
    for kind, delete in (
        ("deployment", found.apps.delete_collection_namespaced_deployment),
        ("job", found.batch.delete_collection_namespaced_job),
        ("budget", found.policy.delete_collection_namespaced_pod_disruption_budget),
    ):
        delete("default", propagation_policy="Background" if kind != "budget" else None)
    assert wait_until(lambda: not found.core.list_namespaced_pod("default").items, SECONDS)


def template(name: str, script: str, **spec: Any) -> dict[str, Any]:
    """A pod with a GPU, for a Deployment or a Job."""
    container = {"name": name, "image": GPU_PROBE, "command": ["/bin/sh", "-c", script]}
    container |= {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    body = {"containers": [container], "runtimeClassName": "nvidia"}
    body |= {"terminationGracePeriodSeconds": 1, **spec}
    return {"metadata": {"labels": {"app": name}}, "spec": body}


def serve(nodes: Nodes, replicas: int, budget: int, **spec: Any) -> None:
    """A Deployment of pods with GPUs, and the number of them that must be available."""
    labels = {"app": "serve"}
    made = {"replicas": replicas, "selector": {"matchLabels": labels}}
    made |= {"template": template("serve", "sleep 100000", **spec)}
    nodes.apps.create_namespaced_deployment(
        "default", {"metadata": {"name": "serve"}, "spec": made}
    )
    wanted = {"minAvailable": budget, "selector": {"matchLabels": labels}}
    nodes.policy.create_namespaced_pod_disruption_budget(
        "default", {"metadata": {"name": "serve"}, "spec": wanted}
    )
    assert wait_until(lambda: nodes.ready("serve") == replicas, SECONDS)


def watched(nodes: Nodes, lowest: list[int]) -> Callable[[], None]:
    """Note the lowest number of ready pods, until what is returned is called."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.5):
            lowest[0] = min(lowest[0], nodes.ready("serve"))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()

    def end() -> None:
        over.set()
        thread.join()

    return end


def on(name: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": name}


def test_nodes_change_under_work_and_go_back(nodes: Nodes) -> None:
    """A Job is waited for, a budget is kept, a node that a user cordoned is left alone."""
    nodes.core.patch_node(CONTROL, {"spec": {"unschedulable": True}})
    serve(nodes, 1, 0, nodeSelector=on(SECOND))
    job = {"backoffLimit": 0, "template": template(
        "train", "n=0; while [ $n -lt 40 ]; do nvidia-smi -L || exit 1; n=$((n+1)); sleep 1; done",
        restartPolicy="Never", nodeSelector=on(OTHER),
    )}  # fmt: skip
    nodes.batch.create_namespaced_job("default", {"metadata": {"name": "train"}, "spec": job})
    assert wait_until(lambda: nodes.ready("train") == 1, SECONDS)
    try:
        done = nodes.run("start", "--to", NEW, "--yes")
        assert done.returncode == 0, done.stdout
        assert f"left out: {CONTROL}: another user cordoned the node" in done.stdout
        assert nodes.states() == {SECOND: "done", OTHER: "done"}
        status = nodes.batch.read_namespaced_job("train", "default").status
        assert (status.succeeded, status.failed) == (1, None)
        assert wait_until(lambda: nodes.ready("serve") == 1, SECONDS)
        for name in (SECOND, OTHER):
            nodes.assert_in_service(name, NEW)
        assert nodes.core.read_node(CONTROL).spec.unschedulable
        assert loaded(nodes.host(CONTROL)) == OLD
    finally:
        nodes.core.patch_node(CONTROL, {"spec": {"unschedulable": None}})
    back = nodes.run("rollback", "--yes")
    assert back.returncode == 0, back.stdout
    for name in (SECOND, OTHER):
        nodes.assert_in_service(name, OLD)


def test_a_canary_that_fails_is_rolled_back_under_a_budget(nodes: Nodes) -> None:
    serve(nodes, 2, 1)
    lowest = [2]
    end = watched(nodes, lowest)
    canary = nodes.host(SECOND)
    canary.set_fault("dkms-failure", True)
    try:
        waiting = nodes.at(SECOND, "change failed", lambda: canary.set_fault("dkms-failure", False))
        done = nodes.run("start", "--to", NEW, "--yes", "--limit", SECOND, "--limit", CONTROL)
        waiting.join()
    finally:
        canary.set_fault("dkms-failure", False)
        end()
    assert done.returncode == 1, done.stdout
    assert nodes.states() == {SECOND: "reverted", CONTROL: "waiting"}
    assert lowest == [1] or lowest == [2]
    for name in (SECOND, CONTROL):
        nodes.assert_in_service(name, OLD)


def test_a_budget_that_cannot_be_met_is_named(nodes: Nodes) -> None:
    serve(nodes, 1, 1, nodeSelector=on(SECOND))
    nodes.data = {"upgrade_wait": 15}
    done = nodes.run("start", "--to", NEW, "--yes", "--limit", SECOND)
    assert done.returncode == 1
    assert nodes.states() == {SECOND: "passed over"}
    assert "disruption budget serve needs 1 healthy pods" in nodes.status()["hosts"][0]["reason"]
    assert nodes.ready("serve") == 1
    nodes.assert_in_service(SECOND, OLD)


def test_a_killed_run_goes_on(nodes: Nodes) -> None:
    """SIGKILL of the controller at random moments: no node stays cordoned, no job is ended."""
    moments = random.Random(SEED)
    options = ("--to", NEW, "--yes", "--limit", SECOND)
    while not nodes.events():
        nodes.killed(moments.uniform(40, 60), "start", *options)
    for _ in range(KILLS):
        if not nodes.killed(moments.uniform(3, 30), "resume"):
            break
    done = nodes.run("resume")
    assert done.returncode == 0, done.stdout
    assert [event for _, event in nodes.events()].count("changed") == 1
    nodes.assert_in_service(SECOND, NEW)
    assert nodes.run("rollback", "--yes").returncode == 0
    nodes.assert_in_service(SECOND, OLD)


def test_a_node_that_cannot_be_rolled_back_is_left_with_the_reason(nodes: Nodes) -> None:
    canary = nodes.host(SECOND)
    damage = "echo x >>$(ls -d /var/lib/gpufleet/upgrade/packages/*utils* | head -n 1)"
    canary.set_fault("dkms-failure", True)
    try:
        waiting = nodes.at(SECOND, "change failed", lambda: canary.run(damage))
        done = nodes.run("start", "--to", NEW, "--yes", "--limit", SECOND)
        waiting.join()
    finally:
        canary.set_fault("dkms-failure", False)
    assert done.returncode == 1
    assert nodes.states() == {SECOND: "stuck"}
    node = nodes.core.read_node(SECOND)
    assert node.spec.unschedulable
    assert "GF056" in node.metadata.annotations["gpufleet/upgrade-failed"]
    assert "gpufleet/upgrade-failed" in [taint.key for taint in node.spec.taints]
