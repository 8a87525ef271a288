"""A kubeadm cluster of sandbox hosts whose driver is changed, and pods at work on its nodes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster_site import Api, bare_hosts
from driver_state import loaded
from upgrading import Fleet

from gpufleet_sandbox import Host, Sandbox
from gpufleet_sandbox.kubernetes.images import GPU_PROBE
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.fake_charts import write_charts
from tests.naming import RUN

CONTROL, SECOND, OTHER = "ubuntu2404", "ubuntu2404-2", "debian12"  # H100, H100, L40S
OLD, NEW = "580.178.04", "595.91.07"
SECONDS = 900
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


@contextmanager
def older_nodes(name: str, folder: Path) -> Iterator[tuple[Sandbox, Path]]:
    """A cluster of three nodes with the older driver, and the folder of its charts."""
    write_charts(folder / "charts")
    with bare_hosts(f"{RUN}-{name}", {CONTROL: 2, OTHER: 1}) as box:
        nodes = Nodes([], folder, box=box, charts=folder / "charts")
        done = nodes.gpufleet("cluster", "create", nodes.inventory(), "--yes")
        assert done.returncode == 0, done.stdout
        yield box, folder / "charts"


def clear(nodes: Nodes) -> None:
    """End what the test has started."""
    for kind, delete in (
        ("deployment", nodes.apps.delete_collection_namespaced_deployment),
        ("job", nodes.batch.delete_collection_namespaced_job),
        ("budget", nodes.policy.delete_collection_namespaced_pod_disruption_budget),
        ("pod", nodes.core.delete_collection_namespaced_pod),
    ):
        delete("default", propagation_policy="Background" if kind != "budget" else None)
    assert wait_until(lambda: not nodes.core.list_namespaced_pod("default").items, SECONDS)


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
