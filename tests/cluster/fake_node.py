"""A node whose pods get their status from the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import NotFoundException

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.cluster.nodes import node
from gpufleet_sandbox.waiting import wait_until
from tests.cluster.pods import SECONDS


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class FakeNode:
    """A node that kwok ignores."""

    cluster: Cluster
    name: str

    @property
    def core(self) -> Any:
        return client.CoreV1Api(self.cluster.api)

    def ready(self) -> None:
        """Report the node ready, as a kubelet does periodically; wait until it accepts pods."""
        condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": now()}
        self.core.patch_node_status(self.name, {"status": {"conditions": [condition]}})
        assert wait_until(lambda: not self.core.read_node(self.name).spec.taints, SECONDS)

    def pods(self, count: int) -> list[Any]:
        """Wait until this many pods are scheduled to the node and did not start."""

        def found() -> Any:
            chosen = f"spec.nodeName={self.name},status.phase=Pending"
            pods = self.core.list_pod_for_all_namespaces(field_selector=chosen).items
            return pods if len(pods) == count else None

        pods = wait_until(found, SECONDS)
        assert pods, f"{count} pods were not scheduled to the node"
        return list(pods)

    def set_status(self, pod: Any, phase: str, **state: Any) -> None:
        """Set the phase of a pod and the `state` of its container."""
        container = pod.spec.containers[0]
        status = {
            "name": container.name, "image": container.image, "imageID": "", "ready": False,
            "restartCount": 0, "state": state,
        }  # fmt: skip
        body = {"status": {"phase": phase, "containerStatuses": [status]}}
        self.core.patch_namespaced_pod_status(pod.metadata.name, pod.metadata.namespace, body)

    def start(self, pod: Any) -> str:
        """Set its container to running; the time of its start."""
        began = now()
        self.set_status(pod, "Running", running={"startedAt": began})
        return began

    def end(self, pod: Any, began: str, status: int = 0) -> None:
        """Set its container to terminated."""
        state = {"exitCode": status, "startedAt": began, "finishedAt": now()}
        self.set_status(pod, "Failed" if status else "Succeeded", terminated=state)

    def confirm_deletions(self) -> None:
        """Remove pods that are being deleted, as a kubelet does once their containers ended."""
        pods = self.core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={self.name}")
        for pod in pods.items:
            if pod.metadata.deletion_timestamp:
                name, space = pod.metadata.name, pod.metadata.namespace
                with suppress(NotFoundException):
                    self.core.delete_namespaced_pod(name, space, grace_period_seconds=0)


@contextmanager
def fake_node(cluster: Cluster, name: str, gpus: int) -> Iterator[FakeNode]:
    """A node without a kubelet."""
    fake = FakeNode(cluster, name)
    body = node(name, gpus=gpus, version=cluster.version)
    body["metadata"]["labels"].pop("type")  # kwok takes nodes by it
    fake.core.create_node(body)
    try:
        yield fake
    finally:
        fake.core.delete_node(name)
