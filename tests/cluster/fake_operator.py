"""A fake GPU Operator: a thread of the test, since simulated nodes run no images.

It follows traces of the real operator v26.7.0, run outside of a cluster of simulated nodes: it
counts a DaemonSet that has no pods yet as ready, keeps `ready` for a moment after a change of the
ClusterPolicy, and sets the state before the conditions.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timezone
from types import TracebackType
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from gpufleet_sandbox.cluster import Cluster
from tests.cluster.pods import workload

PLURAL = ("nvidia.com", "v1", "clusterpolicies")
READ_SECONDS = 0.1  # seconds between two reads of the ClusterPolicies
READS_PER_PASS = 10  # reads between two reconciliations
OPERANDS = {
    "nvidia-operator-validator": "state-operator-validation",
    "nvidia-device-plugin-daemonset": "state-device-plugin",
    "nvidia-dcgm-exporter": "state-dcgm-exporter",
    "nvidia-mig-manager": "state-mig-manager",
}
IMAGES = {
    "nvidia-device-plugin-daemonset": "k8s-device-plugin", "nvidia-dcgm-exporter": "dcgm-exporter"
}  # fmt: skip
NOWHERE = "nvidia-mig-manager"  # no node has GPUs that it could partition
READY = "ClusterPolicy is ready as all resources have been successfully reconciled"


class FakeOperator:
    """Reconciles every ClusterPolicy inside its `with` block.

    `broken`: operand -> annotations that make its simulated pods fail, from generation `since` of
    the policy on. `lag`: reads before it reacts to a change.
    """

    def __init__(
        self,
        cluster: Cluster,
        broken: dict[str, dict[str, str]] | None = None,
        since: int = 1,
        lag: int = 0,
    ) -> None:
        self.custom: Any = client.CustomObjectsApi(cluster.api)
        self.apps: Any = client.AppsV1Api(cluster.api)
        self.broken = broken or {}
        self.since = since
        self.lag = lag
        self.seen: dict[str, tuple[int, int]] = {}  # policy -> generation, reads since
        self.states: list[str] = []  # in the order in which it set them
        self.stop = threading.Event()
        self.work: Future[None] = Future()  # the thread inside the `with` block

    def __enter__(self) -> FakeOperator:
        pool = ThreadPoolExecutor(1)
        self.work = pool.submit(self._run)
        pool.shutdown(wait=False)  # no other task follows
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop.set()
        failure = self.work.exception()  # waits until it ends
        if failure:
            raise failure from error

    def _run(self) -> None:
        while not self.stop.wait(READ_SECONDS):
            try:
                for policy in self.custom.list_cluster_custom_object(*PLURAL)["items"]:
                    self._reconcile(policy)
            except ApiException as error:
                if not _is_transient(error):
                    raise

    def _reconcile(self, policy: dict[str, Any]) -> None:
        uid, generation = policy["metadata"]["uid"], policy["metadata"]["generation"]
        known, reads = self.seen.get(uid, (0, 0))
        reads = reads + 1 if known == generation else 0
        self.seen[uid] = (generation, reads)
        if reads < self.lag or (reads - self.lag) % READS_PER_PASS:
            return
        waiting = [state for name, state in OPERANDS.items() if not self._apply(policy, name)]
        self._report(policy, waiting)

    def _apply(self, policy: dict[str, Any], name: str) -> bool:
        """Create or update one DaemonSet; whether the operator counts it as ready."""
        broken = policy["metadata"]["generation"] >= self.since
        annotations = self.broken.get(name, {}) if broken else {}
        wanted = _daemon_set(policy, name, annotations)
        if (policy["spec"].get("dcgmExporter") or {}).get("enabled") is False and "dcgm" in name:
            return True
        space = "gpu-operator"
        try:
            found = self.apps.read_namespaced_daemon_set(name, space)
        except ApiException as error:
            if error.status != 404:
                raise
            found = self.apps.create_namespaced_daemon_set(space, wanted)
        if found.metadata.annotations["example.invalid/hash"] != _hash(policy, annotations):
            self.apps.replace_namespaced_daemon_set(name, space, wanted)
            return False
        status = found.status
        return not status.desired_number_scheduled or not status.number_unavailable

    def _report(self, policy: dict[str, Any], waiting: list[str]) -> None:
        state = "notReady" if waiting else "ready"
        message = f"ClusterPolicy is not ready; states not ready: [{' '.join(waiting)}]"
        conditions = [
            _condition("Ready", not waiting, "Error" if waiting else "Reconciled", READY),
            _condition("Error", bool(waiting), "OperandNotReady" if waiting else "Ready", message),
        ]
        status = {"state": state, "namespace": "gpu-operator", "conditions": conditions}
        name = policy["metadata"]["name"]
        self.custom.patch_cluster_custom_object_status(*PLURAL, name, {"status": status})
        if self.states[-1:] != [state]:
            self.states.append(state)


def _is_transient(error: ApiException) -> bool:
    """Whether to retry, as operators do: the object was deleted or changed by another client, or
    the server is overloaded or temporarily unavailable."""
    return error.status in (404, 409, 429) or error.status >= 500


def _condition(kind: str, holds: bool, reason: str, message: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": str(holds),
        "reason": reason,
        "message": message if holds else "",
        "lastTransitionTime": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _hash(policy: dict[str, Any], annotations: dict[str, str]) -> str:
    return f"{policy['metadata']['generation']} {sorted(annotations)}"


def _daemon_set(policy: dict[str, Any], name: str, annotations: dict[str, str]) -> dict[str, Any]:
    body = workload(name)
    owner = {"controller": True, "apiVersion": policy["apiVersion"], "kind": policy["kind"]}
    body["metadata"] |= {
        "labels": (policy["spec"].get("daemonsets") or {}).get("labels"),
        "annotations": {"example.invalid/hash": _hash(policy, annotations)},
        "ownerReferences": [owner | {key: policy["metadata"][key] for key in ("name", "uid")}],
    }
    template = body["spec"]["template"]
    template["metadata"]["annotations"] = {
        **annotations, "generation": str(policy["metadata"]["generation"])
    }  # fmt: skip
    (container,) = template["spec"]["containers"]
    container["image"] = f"example.invalid/{IMAGES.get(name, name)}:1"
    label = "no/where" if name == NOWHERE else "nvidia.com/gpu.present"
    template["spec"]["nodeSelector"] = {label: "true"}
    return body
