"""Nodes of one cluster during a run: out of service, drained, checked, and back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.visible import one_line
from gpufleet.kube.findings import LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ApiError, ClusterApi
from gpufleet.upgrade.nodes import (
    TAINT,
    cordoning,
    is_ready,
    leaving_behind,
    mark_of,
    returning,
    tainting,
    why_not_begun,
    why_not_ours,
)
from gpufleet.upgrade.pods import (
    Leaving,
    Pod,
    Policy,
    check_pod,
    gpu_of,
    gpus_of,
    less,
    name_of,
    owner_name,
    sort_pods,
    tolerates,
    unplaced,
)

TRIES = 5  # of a write that others were faster than
FIRST, LONGEST = 2.0, 60.0  # seconds between two attempts to evict a pod that a budget protects
POLL = 1.0  # seconds
LEAVES = 120.0  # seconds for the pods of DaemonSets to end
FORBIDDEN, MISSING, CONFLICT, LATER = 403, 404, 409, 429
TERMINATING = "being terminated"  # of the API's message about a namespace
NAMESPACE = "default"  # of the pod that checks a node


@dataclass(slots=True)
class Round:
    """What one look at a node found. `given_up`: it cannot be drained."""

    drained: bool = False
    given_up: str = ""
    reasons: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Later:
    """A pod whose eviction was refused: when it is tried again."""

    at: float = 0.0
    pause: float = FIRST
    reason: str = ""


class ClusterNodes:
    """The nodes of one cluster that belong to hosts of a run; used by several threads, one for each
    node at a time. Raises ClusterProblem where the API does not answer."""

    def __init__(self, api: ClusterApi, run: str, nodes: Mapping[str, str]) -> None:
        """`nodes`: host -> name of its node."""
        self.api, self.run, self.nodes = api, run, nodes
        self.later: dict[str, _Later] = {}
        self.policy = ""
        self.stopping = threading.Event()  # of the run: it waits for nothing any more

    def drain(self, host: str, policy: Policy) -> Round:
        """One round: cordon the node, evict pods; last let the clients of DaemonSets go."""
        name = self.nodes[host]
        node = self._node(name)
        if reason := why_not_begun(node, self.run):
            return Round(given_up=reason)
        leaving = sort_pods(self._pods(name), policy)
        if stays := [pod for pod in leaving.clients if tolerates(pod, TAINT)]:
            return Round(given_up=f"DaemonSet of {name_of(stays[0])} tolerates every taint: it "
                         "would use the GPUs during the change")  # fmt: skip
        if why_not_ours(node, self.run):
            if reason := self._cordoned(name):
                return Round(given_up=reason)
            leaving = sort_pods(self._pods(name), policy)  # some came before it was cordoned
        if leaving.empty:
            return Round(drained=self._clients_left(name, leaving))
        return self._evicted(name, leaving)

    def clear(self, host: str, policy: Policy) -> str:
        """Let the clients of DaemonSets go and wait for their end; "" or why they did not."""
        name = self.nodes[host]
        ends = time.monotonic() + LEAVES
        while True:
            if reason := why_not_ours(self.api.find(f"/api/v1/nodes/{name}"), self.run):
                return reason
            leaving = sort_pods(self._pods(name), policy)
            if leaving.empty and self._clients_left(name, leaving):
                return ""
            if time.monotonic() > ends or self.stopping.wait(POLL):
                there = [*map(name_of, (*leaving.evict, *leaving.clients))]
                return f"pods do not end: {', '.join((*there, *leaving.waited, *leaving.going))}"

    def check(self, host: str, image: str, seconds: float) -> str:
        """With the clients back, the node offers what it did, and a pod sees its GPU; "" or why
        not. The node stays cordoned."""
        name = self.nodes[host]
        ends = time.monotonic() + seconds
        problem = "the API does not answer"
        while problem and time.monotonic() < ends and not self.stopping.is_set():
            try:
                self._patch(name, lambda node: tainting(node, self.run, there=False))
                problem = self._not_as_before(name)
            except ClusterProblem as error:  # the API may be on this very host
                if any(each.code == LEASE_LOST.code for each in error.findings):
                    raise  # another run is at work: that says nothing about the host
                problem = "; ".join(each.message for each in error.findings)
            if problem:
                self.stopping.wait(POLL)
        if problem:
            return problem
        mark = mark_of(self._node(name))
        gpu = gpu_of(mark.get("gpus") or {})
        return self._pod_checked(name, image, gpu, seconds) if gpu else ""

    def give_back(self, host: str) -> None:
        """Give the node its earlier state; one that was deleted has none."""
        if self.api.find(f"/api/v1/nodes/{self.nodes[host]}"):
            self._patch(self.nodes[host], lambda node: returning(node, self.run))

    def leave_behind(self, host: str, reason: str) -> None:
        """Keep everything away from the node, and say why on it."""
        if self.api.find(f"/api/v1/nodes/{self.nodes[host]}"):
            self._patch(self.nodes[host], lambda node: leaving_behind(node, self.run, reason))

    def _cordoned(self, name: str) -> str:
        """Cordon a node, unless others were faster: "" or what they did."""
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

        def patch(found: Mapping[str, Any]) -> Any:
            if why_not_begun(found, self.run):
                return None
            return cordoning(found, self.run, since, gpus_of(found))

        self._patch(name, patch)
        return why_not_begun(self._node(name), self.run)

    def _evicted(self, name: str, leaving: Leaving) -> Round:
        found = Round(reasons=[f"{pod}: {why}" for pod, why in leaving.waited.items()])
        found.reasons += [f"{pod}: it is ending" for pod in leaving.going]
        for pod in leaving.evict:
            later = self.later.setdefault(str(pod["metadata"].get("uid")), _Later())
            if time.monotonic() >= later.at:
                found.given_up = found.given_up or self._evict(pod, later)
            if later.reason:
                found.reasons.append(f"{name_of(pod)}: {later.reason}")
        return found

    def _evict(self, pod: Pod, later: _Later) -> str:
        """Ask for one eviction; why it will never be allowed, or ""."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
        body: dict[str, Any] = {"apiVersion": self._policy(), "kind": "Eviction"}
        body |= {"metadata": {k: metadata[k] for k in ("name", "namespace")}}
        later.reason = ""
        try:
            self.api.attempt(path, body | {"deleteOptions": _this(metadata)})
        except ApiError as error:
            if error.status in (MISSING, CONFLICT):  # it is gone, or another of its name is there
                return ""
            said = one_line("; ".join(error.causes) or error.message)
            if TERMINATING in error.message:  # the pod goes with its namespace
                later.reason = said
                return ""
            if error.status != LATER:
                return f"{name_of(pod)} cannot be evicted: {said}"
            hint = unplaced(pod, self._pods_of(metadata["namespace"]))
            later.reason = f"{said}{'; ' if hint else ''}{hint}"
            later.at = time.monotonic() + later.pause
            later.pause = min(later.pause * 2, LONGEST)
        return ""

    def _clients_left(self, name: str, leaving: Leaving) -> bool:
        """Whether none of the clients is on the node any more; else they are on their way."""
        owners = sorted({owner_name(pod) for pod in leaving.clients})
        self._patch(name, lambda node: tainting(node, self.run, there=True, clients=owners))
        for pod in leaving.clients:
            if pod["metadata"].get("deletionTimestamp"):
                continue
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            try:
                self.api.delete(path, _this(metadata))
            except ApiError as error:
                if error.status not in (MISSING, CONFLICT):
                    raise
        return not leaving.clients

    def _not_as_before(self, name: str) -> str:
        """What the node lacks of what it had; "" if nothing."""
        node = self._node(name)
        mark = mark_of(node)
        if not is_ready(node):
            return "the node is not Ready"
        ready = {owner_name(pod) for pod in self._pods(name) if _is_ready(pod)}
        lacking = [owner for owner in mark.get("clients") or () if owner not in ready]
        if lacking:
            return f"pods that are not Ready on the node: {', '.join(lacking)}"
        gone = less(mark.get("gpus") or {}, gpus_of(node))
        return f"the node offers less: {gone}" if gone else ""

    def _pod_checked(self, name: str, image: str, gpu: str, seconds: float) -> str:
        """Run a pod that uses a GPU; "" or why it did not end well. It is deleted."""
        keys = [each["key"] for each in self._node(name)["spec"].get("taints") or ()]
        runtime = self.api.find("/apis/node.k8s.io/v1/runtimeclasses/nvidia")
        wanted = check_pod(name, image, gpu, "nvidia" if runtime else None, keys)
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        pod = self.api.create(pods, wanted)
        path = f"{pods}/{pod['metadata']['name']}"
        ends = time.monotonic() + seconds
        try:
            while time.monotonic() < ends and not self.stopping.is_set():
                found = self.api.find(path)
                if found is None:
                    return "another user deleted the GPU pod"
                pod = found
                phase = pod["status"].get("phase")
                if phase in ("Succeeded", "Failed"):
                    return "" if phase == "Succeeded" else f"a GPU pod failed: {_said(pod)}"
                self.stopping.wait(POLL)
            return f"a GPU pod did not end within {seconds:.0f} s: {_said(pod)}"
        finally:
            if self.api.find(path):
                self.api.delete(path)

    def _policy(self) -> str:
        """The version of evictions: Kubernetes has policy/v1 from 1.22 on."""
        if not self.policy:
            self.policy = "policy/v1" if self.api.find("/apis/policy/v1") else "policy/v1beta1"
        return self.policy

    def _node(self, name: str) -> dict[str, Any]:
        return self.api.get(f"/api/v1/nodes/{name}")

    def _pods(self, name: str) -> list[Any]:
        return self.api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={name}")

    def _pods_of(self, namespace: str) -> list[Any]:
        pending = "status.phase=Pending"
        return self.api.list(f"/api/v1/namespaces/{namespace}/pods", fieldSelector=pending)

    def _patch(self, name: str, make: Callable[[Mapping[str, Any]], Any]) -> None:
        """Write the patch of what the node is now; again where others were faster."""
        for left in reversed(range(TRIES)):
            patch = make(self._node(name))
            if patch is None:
                return
            try:
                self.api.merge(f"/api/v1/nodes/{name}", patch)
                return
            except ApiError as error:
                if error.status != CONFLICT or not left:
                    raise


def operator_owns_driver(api: ClusterApi) -> bool:
    """Whether a GPU Operator installs the drivers of a cluster."""
    try:
        found = api.list("/apis/nvidia.com/v1/clusterpolicies")
    except ApiError as error:
        if error.status not in (MISSING, FORBIDDEN):
            raise
        return False
    wanted = [((each.get("spec") or {}).get("driver") or {}).get("enabled") for each in found]
    return any(each is not False for each in wanted)


def _this(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """DeleteOptions for this very pod, and none of its name that came since."""
    preconditions = {"uid": metadata["uid"]}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}


def _is_ready(pod: Pod) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def _said(pod: Pod) -> str:
    """Why a pod is where it is."""
    status = pod.get("status") or {}
    texts = [status.get("reason"), status.get("message")]
    for condition in status.get("conditions") or ():
        texts += [condition.get("message")] if condition.get("status") == "False" else []
    for container in status.get("containerStatuses") or ():
        for state in (container.get("state") or {}).values():
            texts += [state.get("reason"), state.get("message")]
    return one_line("; ".join(str(each) for each in texts if each)) or str(status.get("phase"))
