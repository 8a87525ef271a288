"""Evicts pods from nodes in passes, by the Eviction API, which keeps PodDisruptionBudgets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gpufleet.core.visible import one_line
from gpufleet.drain.nodes import UPGRADE_FIELD_MANAGER
from gpufleet.drain.pods import Leaving, Pod, is_pod_ready, name_of, owner_of
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError

MAX_PARALLEL_EVICTIONS = 16  # parallel requests to a cluster
FIRST, LONGEST = 2.0, 60.0  # seconds between two attempts to evict pods that a budget protects
PASS = 20.0  # seconds of one pass, after which the other nodes are checked
PATIENT = 8.0  # pause from which on a budget is checked for never allowing an eviction
CONFLICT, LATER = 409, 429

Value = TypeVar("Value")


@dataclass(slots=True)
class Round:
    """The result of one pass over a node. `given_up`: it cannot be drained; `evicted`: number of
    pods that began to leave in this pass."""

    drained: bool = False
    given_up: str = ""
    evicted: int = 0
    reasons: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Turn:
    """When the pods of a controller are tried again, and why not yet."""

    at: float = 0.0
    pause: float = FIRST
    reason: str = ""


class Evictions:
    """Evictions of the pods of one cluster, one pass at a time."""

    def __init__(
        self,
        api: ClusterApi,
        is_over: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_over`: True if no more pods must be evicted, because the run ends."""
        self.api, self._is_over, self._clock = api, is_over, clock
        self._turns: dict[str, _Turn] = {}  # by uid of the controller
        self._policy = ""

    def evict(self, leaving: Mapping[str, Leaving]) -> dict[str, Round]:
        """Evict pods of these nodes whose next try is due: those of each controller until one is
        refused, first those that are not Ready, which it already does without. Raises
        ClusterProblem."""
        found: dict[str, Round] = {}
        groups: dict[str, list[tuple[str, Pod]]] = {}
        for node, each in leaving.items():
            waited = [f"{pod}: {why}" for pod, why in each.waited.items()]
            ending = [f"{pod}: it is ending" for pod in each.going]
            found[node] = Round(reasons=[*waited, *ending])
            for pod in each.evict:
                owner = owner_of(pod).get("uid") or pod["metadata"]["uid"]
                groups.setdefault(owner, []).append((node, pod))
        if groups and not self._policy:  # Kubernetes has policy/v1 since 1.22
            newer = self.api.find("/apis/policy/v1") is not None
            self._policy = "policy/v1" if newer else "policy/v1beta1"
        ends = self._clock() + PASS
        with ThreadPoolExecutor(MAX_PARALLEL_EVICTIONS) as pool:
            passes = [
                pool.submit(self._evict_group, uid, pods, ends) for uid, pods in groups.items()
            ]
            for evicted, left in [each.result() for each in passes]:
                for node, _ in evicted:
                    found[node].evicted += 1
                for node, reason in left:
                    found[node].reasons += [reason] if reason else []
        return found

    def _evict_group(
        self, owner: str, group: Sequence[tuple[str, Pod]], ends: float
    ) -> tuple[list[tuple[str, Pod]], list[tuple[str, str]]]:
        """The pods of one controller that leave, each with its node, and the pods that stay, as
        node and reason. Raises ClusterProblem."""
        turn = self._turns.setdefault(owner, _Turn())
        waiting = sorted(group, key=lambda each: is_pod_ready(each[1]))
        gone = []
        while waiting and turn.at <= self._clock() < ends and not self._is_over():
            if reason := self._why_refused(waiting[0][1], turn.pause):
                turn.at, turn.reason = self._clock() + turn.pause, reason
                turn.pause = min(turn.pause * 2, LONGEST)
                break
            turn.pause, turn.reason = FIRST, ""
            gone.append(waiting.pop(0))
        why = turn.reason
        return gone, [(node, f"{name_of(pod)}: {why}" if why else "") for node, pod in waiting]

    def _why_refused(self, pod: Pod, pause: float) -> str | None:
        """Request one eviction. Returns why it is refused, or None if the pod leaves or is gone."""
        about = pod["metadata"]
        path = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}/eviction"
        body: dict[str, Any] = {"apiVersion": self._policy, "kind": "Eviction"}
        body |= {"metadata": {key: about[key] for key in ("name", "namespace")}}
        try:
            self.api.attempt(path, body | {"deleteOptions": this_pod(pod)})
        except ApiError as error:
            if error.is_missing or error.status == CONFLICT:  # another pod has its name
                return None
            said = one_line("; ".join(error.causes) or error.message or error.reason)
            if error.status != LATER:
                return f"{error.status} {said}"
            hint = self._hint(pod) if pause >= PATIENT else None
            return f"{said}; {hint}" if hint else said
        return None

    def _hint(self, pod: Pod) -> str | None:
        """Why a budget may never allow the eviction, or None: the pod's successor fits no node."""
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        for other in self.api.list(path, fieldSelector="status.phase=Pending"):
            for condition in (other.get("status") or {}).get("conditions") or ():
                if condition.get("reason") == "Unschedulable" and owner_of(other) == owner_of(pod):
                    return f"{name_of(other)} has no node: {one_line(condition.get('message', ''))}"
        return None

    def delete_clients(self, clients: Sequence[Pod]) -> None:
        """Delete pods of DaemonSets: budgets would only count their eviction. Raises ApiError.

        Pods with claims first, the others in a later call: the DRA plugin must release the claims.
        """
        claiming = [pod for pod in clients if pod["spec"].get("resourceClaims")]
        for pod in claiming or clients:
            about = pod["metadata"]
            if about.get("deletionTimestamp"):
                continue
            path = f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}"
            try:
                self.api.delete(path, this_pod(pod))
            except ApiError as error:
                if not error.is_missing and error.status != CONFLICT:
                    raise


def this_pod(pod: Pod) -> dict[str, Any]:
    """DeleteOptions for exactly this pod, not for a newer pod of the same name."""
    preconditions = {"uid": pod["metadata"]["uid"]}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}


def of_node(api: ClusterApi, name: str) -> list[Any]:
    """The pods of one node."""
    return api.list("/api/v1/pods", fieldSelector=f"spec.nodeName={name}")


def pods_of(api: ClusterApi, nodes: Mapping[str, str]) -> dict[str, list[Any]]:
    """Host -> the pods of its node."""
    return side_by_side(lambda host: of_node(api, nodes[host]), list(nodes))


def every_node(api: ClusterApi) -> list[Any]:
    """All nodes, without their lists of images and of managed fields."""
    return api.list("/api/v1/nodes", "application/json", _lean)


def _lean(node: dict[str, Any]) -> dict[str, Any]:
    entries = node["metadata"].pop("managedFields", None) or ()
    ours = [entry for entry in entries if entry.get("manager") == UPGRADE_FIELD_MANAGER]
    node["metadata"]["managedFields"] = ours
    (node.get("status") or {}).pop("images", None)
    return node


def side_by_side(call: Callable[[str], Value], names: Sequence[str]) -> dict[str, Value]:
    """Call a function for each of these names in parallel."""
    with ThreadPoolExecutor(MAX_PARALLEL_EVICTIONS) as pool:
        return dict(zip(names, pool.map(call, names), strict=True))
