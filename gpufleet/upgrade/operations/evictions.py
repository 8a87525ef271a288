"""Pods of a node that leave it by the Eviction API, which keeps PodDisruptionBudgets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufleet.core.visible import one_line
from gpufleet.kube.operations.api import ApiError, ClusterApi
from gpufleet.upgrade.pods import Leaving, Pod, name_of, unplaced

FIRST, LONGEST = 2.0, 60.0  # seconds between two attempts to evict a pod that a budget protects
MISSING, CONFLICT, LATER = 404, 409, 429
TERMINATING = "being terminated"  # of the API's message about a namespace


@dataclass(slots=True)
class Round:
    """What one look at a node found. `given_up`: it cannot be drained; `silent`: its cluster does
    not answer."""

    drained: bool = False
    given_up: str = ""
    silent: bool = False
    reasons: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Later:
    """A pod whose eviction was refused: when it is tried again."""

    at: float = 0.0
    pause: float = FIRST
    reason: str = ""


class Evictions:
    """Of the pods of one cluster; used by several threads, one for each node at a time."""

    def __init__(self, api: ClusterApi) -> None:
        self.api = api
        self._later: dict[str, _Later] = {}
        self._policy = ""

    def evict(self, leaving: Leaving) -> Round:
        """One round: those that it is time for."""
        found = Round(reasons=[f"{pod}: {why}" for pod, why in leaving.waited.items()])
        found.reasons += [f"{pod}: it is ending" for pod in leaving.going]
        for pod in leaving.evict:
            later = self._later.setdefault(str(pod["metadata"].get("uid")), _Later())
            if time.monotonic() >= later.at:
                found.given_up = found.given_up or self._evict(pod, later)
            if later.reason:
                found.reasons.append(f"{name_of(pod)}: {later.reason}")
        return found

    def _evict(self, pod: Pod, later: _Later) -> str:
        """Ask for one eviction; why it will never be allowed, or ""."""
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
        body: dict[str, Any] = {"apiVersion": self._version(), "kind": "Eviction"}
        body |= {"metadata": {k: metadata[k] for k in ("name", "namespace")}}
        later.reason = ""
        try:
            self.api.attempt(path, body | {"deleteOptions": this_pod(metadata)})
        except ApiError as error:
            if error.status in (MISSING, CONFLICT):  # it is gone, or another of its name is there
                return ""
            said = one_line("; ".join(error.causes) or error.message)
            if TERMINATING in error.message:  # the pod goes with its namespace
                later.reason = said
                return ""
            if error.status != LATER:
                return f"{name_of(pod)} cannot be evicted: {said}"
            hint = unplaced(pod, self._pending(metadata["namespace"]))
            later.reason = f"{said}{'; ' if hint else ''}{hint}"
            later.at = time.monotonic() + later.pause
            later.pause = min(later.pause * 2, LONGEST)
        return ""

    def _version(self) -> str:
        """The version of evictions: Kubernetes has policy/v1 from 1.22 on."""
        if not self._policy:
            self._policy = "policy/v1" if self.api.find("/apis/policy/v1") else "policy/v1beta1"
        return self._policy

    def _pending(self, namespace: str) -> list[Any]:
        pending = "status.phase=Pending"
        return self.api.list(f"/api/v1/namespaces/{namespace}/pods", fieldSelector=pending)


def this_pod(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """DeleteOptions for this very pod, and none of its name that came since."""
    preconditions = {"uid": metadata["uid"]}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
