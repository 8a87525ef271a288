"""What the GPU Operator does to a cluster, done by a thread: its image runs on no simulated node.

Written after traces of the real operator v26.7.0, which was run outside of a cluster of simulated
nodes: it counts a DaemonSet that has no pods yet as ready, leaves `ready` standing for a moment
after the ClusterPolicy changed, and sets the state before the conditions.
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
LOOK = 0.1  # seconds between two looks at the ClusterPolicies
AGAIN = 10  # looks until it goes over its states again
OPERANDS = {
    "nvidia-operator-validator": "state-operator-validation",
    "nvidia-device-plugin-daemonset": "state-device-plugin",
    "nvidia-dcgm-exporter": "state-dcgm-exporter",
    "nvidia-mig-manager": "state-mig-manager",
}
IMAGES = {
    "nvidia-device-plugin-daemonset": "k8s-device-plugin", "nvidia-dcgm-exporter": "dcgm-exporter"
}  # fmt: skip
NOWHERE = "nvidia-mig-manager"  # no node has GPUs that it could part
READY = "ClusterPolicy is ready as all resources have been successfully reconciled"


class PretendOperator:
    """Works on every ClusterPolicy while it is entered. `broken`: operand -> annotations of its
    pods, by which simulated pods fail, from generation `since` of the policy on. `lag`: looks that
    pass before it heeds a change."""

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
        self.seen: dict[str, tuple[int, int]] = {}  # policy -> generation, looks since
        self.states: list[str] = []  # as it set them
        self.stop = threading.Event()
        self.work: Future[None] = Future()  # while it is entered

    def __enter__(self) -> PretendOperator:
        pool = ThreadPoolExecutor(1)
        self.work = pool.submit(self._run)
        pool.shutdown(wait=False)  # nothing more is to come
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop.set()
        failure = self.work.exception()  # waits for its end
        if failure:
            raise failure from error

    def _run(self) -> None:
        while not self.stop.wait(LOOK):
            try:
                for policy in self.custom.list_cluster_custom_object(*PLURAL)["items"]:
                    self._heed(policy)
            except ApiException as error:
                if not _passes(error):
                    raise

    def _heed(self, policy: dict[str, Any]) -> None:
        uid, generation = policy["metadata"]["uid"], policy["metadata"]["generation"]
        known, looks = self.seen.get(uid, (0, 0))
        looks = looks + 1 if known == generation else 0
        self.seen[uid] = (generation, looks)
        if looks < self.lag or (looks - self.lag) % AGAIN:
            return
        waiting = [state for name, state in OPERANDS.items() if not self._bring(policy, name)]
        self._tell(policy, waiting)

    def _bring(self, policy: dict[str, Any], name: str) -> bool:
        """Make or change one DaemonSet; whether the operator counts it as ready."""
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

    def _tell(self, policy: dict[str, Any], waiting: list[str]) -> None:
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


def _passes(error: ApiException) -> bool:
    """Whether it looks again, as operators do: an object is gone or changed in between, or the
    server has too much to do or cannot answer just now."""
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
