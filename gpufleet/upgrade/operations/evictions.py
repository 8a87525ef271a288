"""Pods that leave their nodes by the Eviction API, which keeps PodDisruptionBudgets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

from gpufleet.core.visible import one_line
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.pods import Leaving, Pod, is_pod_ready, name_of, owner_id, unplaced

AT_ONCE = 16  # requests for evictions that a cluster is sent side by side
FIRST, LONGEST = 2.0, 60.0  # seconds between two attempts to evict pods that a budget protects
PASS = 20.0  # seconds of one pass; then the nodes are looked at, and it goes on with the others
PATIENT = 8.0  # the pause from which on it is looked why a budget may never allow an eviction
CONFLICT, LATER = 409, 429
TERMINATING = "being terminated"  # of the API's message about a namespace
SEVERAL = "more than one PodDisruptionBudget"  # of its message with status 500, which stays


@dataclass(slots=True)
class Round:
    """What one look at a node found. `given_up`: it cannot be drained; `silent`: its cluster does
    not answer; `evicted`: how many of its pods are on their way since."""

    drained: bool = False
    given_up: str = ""
    silent: bool = False
    evicted: int = 0
    reasons: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Turn:
    """Pods of one controller, which the same budget protects: when they are tried again."""

    at: float = 0.0
    pause: float = FIRST
    reason: str = ""
    refused: bool = False  # in this pass


@dataclass(frozen=True, slots=True)
class _Due:
    """A pod that it is time for, and its node."""

    node: str
    pod: Pod
    turn: _Turn


class Evictions:
    """Of the pods of one cluster, one round at a time."""

    def __init__(
        self,
        api: ClusterApi,
        over_in: Callable[[float], bool],
        given_up: Callable[[Collection[str]], Mapping[str, str]],
    ) -> None:
        """`over_in`: waits so many seconds; whether nothing more is to be evicted, because the run
        is ended. `given_up`: those of these nodes that are not to be drained any more, with why."""
        self.api, self._over_in, self._given_up = api, over_in, given_up
        self._turns: dict[str, _Turn] = {}
        self._policy = ""
        self._guard = threading.Lock()

    def evict(self, leaving: Mapping[str, Leaving], seconds: float = 0.0) -> dict[str, Round]:
        """One round: those pods of these nodes that it is time for. Pods of different controllers
        alternate, and after a refusal no other pod of the same one is tried. `seconds`: to go on
        with what was refused, while evictions succeed. Raises ClusterProblem."""
        found = {node: Round(reasons=_standing(each)) for node, each in leaving.items()}
        gone, hints = set[int](), _Hints(self.api)
        ends = time.monotonic() + seconds
        while due := self._due(leaving, found, gone):
            began = time.monotonic()
            if not self._policy:  # Kubernetes has policy/v1 from 1.22 on
                self._policy = "policy/v1" if self.api.find("/apis/policy/v1") else "policy/v1beta1"
            if not self._pass(due, found, gone, hints):
                break
            turns = [turn.at for turn in self._left(leaving, found, gone)]
            now = time.monotonic()
            follows = max(min(turns, default=ends), began + FIRST, now)
            if not turns or follows > ends or self._over_in(follows - now):
                break
            at_work = [node for node, each in found.items() if not each.given_up]
            for node, reason in self._given_up(at_work).items():
                found[node].given_up = reason
        for node, each in leaving.items():
            for pod in each.evict:
                reason = self._turns[owner_id(pod)].reason if id(pod) not in gone else ""
                found[node].reasons += [f"{name_of(pod)}: {reason}"] if reason else []
        return found

    def _left(
        self, leaving: Mapping[str, Leaving], found: Mapping[str, Round], gone: set[int]
    ) -> list[_Turn]:
        """The turns of the pods that are left."""
        return [
            self._turns[owner_id(pod)]
            for node, each in leaving.items()
            for pod in each.evict
            if id(pod) not in gone and not found[node].given_up
        ]

    def _pass(
        self, due: list[_Due], found: Mapping[str, Round], gone: set[int], hints: _Hints
    ) -> int:
        """Try each of the pods once, side by side; how many were evicted. Raises ClusterProblem."""
        failed, ends = list[ClusterProblem](), time.monotonic() + PASS
        before = sum(each.evicted for each in found.values())

        def one(each: _Due) -> None:
            if self._over_in(0) or failed or time.monotonic() > ends:
                return
            if found[each.node].given_up or each.turn.refused:
                return
            try:
                if self._evict(each, found, hints):
                    gone.add(id(each.pod))
            except ClusterProblem as error:  # the others would wait for the same
                failed.append(error)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, due))
        if failed:
            raise failed[0]
        return sum(each.evicted for each in found.values()) - before

    def _due(
        self, leaving: Mapping[str, Leaving], found: Mapping[str, Round], gone: set[int]
    ) -> list[_Due]:
        """The pods that are tried now, one of each controller after the other; of each those first
        that are not Ready, which it does without already."""
        now = time.monotonic()
        by_owner: dict[str, list[_Due]] = {}
        for node, each in leaving.items():
            for pod in sorted(each.evict, key=is_pod_ready):
                turn = self._turns.setdefault(owner_id(pod), _Turn())
                if now >= turn.at and id(pod) not in gone and not found[node].given_up:
                    turn.refused = False
                    by_owner.setdefault(owner_id(pod), []).append(_Due(node, pod, turn))
        return [each for each in chain(*zip_longest(*by_owner.values())) if each]

    def _evict(self, due: _Due, found: Mapping[str, Round], hints: _Hints) -> bool:
        """Ask for one eviction; whether the pod is on its way, or gone."""
        metadata = due.pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
        body: dict[str, Any] = {"apiVersion": self._policy, "kind": "Eviction"}
        body |= {"metadata": {k: metadata[k] for k in ("name", "namespace")}}
        try:
            self.api.attempt(path, body | {"deleteOptions": this_pod(metadata)})
        except ApiError as error:
            if (
                error.is_missing or error.status == CONFLICT
            ):  # gone, or another of its name is there
                return True
            said = one_line("; ".join(error.causes) or error.message)
            if TERMINATING in error.answer:  # the pod goes with its namespace
                self._refused(due.turn, said)
            elif error.status == LATER:
                hint = hints.of(due.pod) if due.turn.pause >= PATIENT else ""
                self._refused(due.turn, f"{said}{'; ' if hint else ''}{hint}")
            elif not error.is_final and SEVERAL not in error.answer:
                self._refused(due.turn, f"{error.status} {said}")
            else:
                found[due.node].given_up = f"{name_of(due.pod)} cannot be evicted: {said}"
            return False
        with self._guard:
            found[due.node].evicted += 1
            if not due.turn.refused:
                due.turn.pause, due.turn.reason = FIRST, ""
        return True

    def _refused(self, turn: _Turn, reason: str) -> None:
        """Longer each time, but once in a pass, however many were under way."""
        with self._guard:
            if not turn.refused:
                turn.refused, turn.reason = True, reason
                turn.at = time.monotonic() + turn.pause
                turn.pause = min(turn.pause * 2, LONGEST)


class _Hints:
    """Why budgets may never allow an eviction, by one list for each namespace and round."""

    def __init__(self, api: ClusterApi) -> None:
        self.api = api
        self._pending: dict[str, list[Any]] = {}
        self._guard = threading.Lock()

    def of(self, pod: Pod) -> str:
        """Its successor that has no node, or "". Raises ClusterProblem."""
        namespace = pod["metadata"]["namespace"]
        with self._guard:
            if namespace not in self._pending:
                path = f"/api/v1/namespaces/{namespace}/pods"
                self._pending[namespace] = self.api.list(path, fieldSelector="status.phase=Pending")
        return unplaced(pod, self._pending[namespace])


def _standing(leaving: Leaving) -> list[str]:
    """Why pods stay that are not evicted."""
    waited = [f"{pod}: {why}" for pod, why in leaving.waited.items()]
    return [*waited, *(f"{pod}: it is ending" for pod in leaving.going)]


def this_pod(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """DeleteOptions for this very pod, and none of its name that came since."""
    preconditions = {"uid": metadata["uid"]}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
