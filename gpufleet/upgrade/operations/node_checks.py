"""Nodes of one cluster during a run: what a pod that checks them needs, and what it finds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpufleet.kube.findings import LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError, is_final
from gpufleet.upgrade.gpus import gpu_of, gpus_of, less
from gpufleet.upgrade.marks import NEVER, Cordon, cordon_after, is_of
from gpufleet.upgrade.node_return import left_on, returning
from gpufleet.upgrade.nodes import (
    TAKEN_BACK,
    UNCORDONED,
    is_cordoned,
    is_other,
    is_ready,
    mark_of,
    tainting,
    why_not_ours,
)
from gpufleet.upgrade.operations.evictions import CONFLICT
from gpufleet.upgrade.operations.gpu_pod import POLL, Pull, pulled, refusal, run_pod
from gpufleet.upgrade.operations.listing import of_node
from gpufleet.upgrade.operations.readable import readable
from gpufleet.upgrade.pods import is_pod_ready, owner_name
from gpufleet.upgrade.states import Event

TRIES = 5  # of a write that others were faster than
NO_GPU = "the node offers no GPU now"


class CheckedNodes:
    """The nodes of hosts of a run, each checked by a pod with a GPU."""

    def __init__(
        self,
        api: ClusterApi,
        run: str,
        nodes: Mapping[str, str],
        machines: Mapping[str, str],
        offering: Collection[str],
    ) -> None:
        """`nodes`: host -> name of its node; `machines`: host -> machine id that its node had when
        the run was planned; `offering`: hosts whose nodes offered GPUs then."""
        self.api, self.run, self.nodes = api, run, nodes
        self.machines, self.offering = machines, offering
        self.goes_back = False  # whether the run undoes another, which may have cost GPUs
        self.has_image: set[str] = set()  # hosts to which this process has pulled the image
        self.unchecked: set[str] = set()  # hosts that no GPU pod has checked: none was offered
        self.stopping = threading.Event()  # of the run: it waits for nothing any more
        self.is_aborted: Callable[[], bool] = lambda: False
        self.cordons: dict[str, Cordon] = {}  # host -> what the record has of it
        self.returned: set[str] = set()  # hosts whose nodes have their earlier state, by the record
        self.record: Callable[[Event, str, str], None] = self._remember  # of a host's cordon
        self._asked, self._aborted = 0.0, False  # when it was asked, and the answer

    def _remember(self, event: Event, host: str, mark: str) -> None:
        self.cordons[host] = cordon_after(self.cordons.get(host, NEVER), event, mark)

    @readable
    def check_refused(self, host: str, image: str) -> str:
        """Why the pod that is to check the node would be refused; "" if it would not. Nothing is
        created."""
        return refusal(self.api, self._node(self.nodes[host]), image)

    @readable
    def pull(self, host: str, image: str, seconds: float) -> Pull:
        """Pull the image of that pod to the node; one that has no GPU to check needs none."""
        node = self._node(self.nodes[host])
        gpus = {**(mark_of(node).get("gpus") or {}), **gpus_of(node)}
        if host not in self.offering and not gpu_of(gpus):
            return Pull()
        found = pulled(self.api, node, image, seconds, self._over_in)
        if found.came == "there":
            self.has_image.add(host)
        return found

    @readable
    def check(self, host: str, image: str, seconds: float) -> str:
        """With the clients back, the node offers what it did, and a pod sees its GPU; "" or why
        not. The node stays cordoned. Raises ClusterProblem where the API does not answer at the
        end: that says nothing about the host."""
        name = self.nodes[host]
        ends = time.monotonic() + seconds
        problem = ""
        self.unchecked.discard(host)
        silent: ClusterProblem | None = None
        while not self.stopping.is_set():
            silent = None
            try:
                self._taint(host, there=False)
                problem = self._not_as_before(host) or self._lost(host)
            except ClusterProblem as error:  # the API may be on this very host
                if any(each.code == LEASE_LOST.code for each in error.findings):
                    raise  # another run is at work
                problem, silent = "; ".join(each.message for each in error.findings), error
            if not problem or time.monotonic() >= ends:
                break
            self.stopping.wait(POLL)
        if silent and not is_final(silent):
            raise silent
        if problem and not (problem == NO_GPU and self.goes_back):
            return problem  # before a roll-back a user may have removed the plugin
        node = self._node(name)
        if reason := self._written(host, self._why_not_ours(host, node)):
            return reason
        gpu = gpu_of(mark_of(node).get("gpus") or {}) or gpu_of(gpus_of(node))
        if not gpu:
            self.unchecked.add(host)
            return ""
        return run_pod(self.api, node, image, gpu, seconds, self.stopping)

    @readable
    def taken_back(self, host: str) -> str:
        """That others have the node in service: it is Ready, and not cordoned; "" if they have not.
        What the run has set on a node that they took back is removed."""
        name = self.nodes[host]
        before = self.api.find(f"/api/v1/nodes/{name}")
        why = self._written(host, why_not_ours(before, self.run))
        if before is None or not why or not is_ready(before):
            return ""

        def returned(node: Mapping[str, Any]) -> Any:
            return self._returning(host, node) if why_not_ours(node, self.run) else None

        self._patch(name, returned)
        node = self._node(name)
        if is_cordoned(node) or not is_ready(node) or is_other(node, self.machines.get(host, "")):
            return ""
        return "; ".join(filter(None, (TAKEN_BACK, self._left_on(host, before, node))))

    def _returning(self, host: str, node: Mapping[str, Any]) -> Any:
        """Earlier values are restored once: a user may have set others since."""
        self._written(host, self._why_not_ours(host, node))
        cordon = self._cordon_of(host)
        cordon = replace(cordon, text="") if host in self.returned else cordon
        return returning(node, self.run, cordon, self.machines.get(host, ""))

    def _cordon_of(self, host: str) -> Cordon:
        """That of a node by the record."""
        return self.cordons.get(host, NEVER)

    def _left_on(self, host: str, before: Mapping[str, Any], node: Mapping[str, Any]) -> str:
        """What may be left of the run on a node. `before`: as it was before its return."""
        if is_of(mark_of(before), self.run):
            return ""
        return left_on(node, NEVER if host in self.returned else self._cordon_of(host))

    def _why_not_ours(self, host: str, node: Mapping[str, Any] | None) -> str:
        """Once another user has uncordoned the node, it is theirs, whatever they do next."""
        why = why_not_ours(node, self.run, self.machines.get(host, ""))
        return why or (UNCORDONED if self.cordons.get(host, NEVER).theirs else "")

    def _written(self, host: str, why: str) -> str:
        """Why a node is given up. That another user uncordoned it is written down before anything
        else: a process that is killed here leaves the next one a node with the mark of the run,
        which the user may have cordoned again."""
        if why == UNCORDONED and not self.cordons.get(host, NEVER).theirs:
            self.record(Event.UNCORDONED, host, "")
        return why

    def _taint(self, host: str, *, there: bool, clients: Sequence[str] = ()) -> None:
        """Set the taint of the run, or remove it, while the node is the run's."""

        def patch(node: Mapping[str, Any]) -> Any:
            if self._written(host, self._why_not_ours(host, node)) and there:
                return None
            return tainting(node, self.run, there=there, clients=clients)

        self._patch(self.nodes[host], patch)

    def _lost(self, host: str) -> str:
        """What the node has lost since the plan, and its plugin may offer again; "" if nothing. The
        mark may know nothing of it: the change that is undone, or a restart, was before it."""
        if host not in self.offering:
            return ""
        return "" if gpu_of(gpus_of(self._node(self.nodes[host]))) else NO_GPU

    def _not_as_before(self, host: str) -> str:
        """What the node lacks of what it had; "" if nothing."""
        name = self.nodes[host]
        node = self.api.find(f"/api/v1/nodes/{name}")
        why = self._written(host, self._why_not_ours(host, node))
        if node is None or why:
            return why  # what it offered is not known, nor its GPUs
        mark = mark_of(node)
        if not is_ready(node):
            return "the node is not Ready"
        ready = {owner_name(pod) for pod in of_node(self.api, name) if is_pod_ready(pod)}
        lacking = [owner for owner in mark.get("clients") or () if owner not in ready]
        if lacking:
            return f"pods that are not Ready on the node: {', '.join(lacking)}"
        gone = less(mark.get("gpus") or {}, gpus_of(node))
        return f"the node offers less: {gone}" if gone else ""

    def _node(self, name: str) -> dict[str, Any]:
        return self.api.get(f"/api/v1/nodes/{name}")

    def _is_gone(self, host: str, error: ApiError) -> bool:
        """Whether a node is deleted: a webhook may refuse a write with the same answer."""
        return error.is_missing and self.api.find(f"/api/v1/nodes/{self.nodes[host]}") is None

    def _patch(
        self, name: str, make: Callable[[Mapping[str, Any]], Any]
    ) -> Mapping[str, Any] | None:
        """Write the patch of what the node is now; again where others were faster. The node as the
        API wrote it; None where there was nothing to write."""
        for left in reversed(range(TRIES)):
            patch = make(self._node(name))
            if patch is None:
                break
            try:
                return self.api.merge(f"/api/v1/nodes/{name}", patch)
            except ApiError as error:
                if error.status != CONFLICT or not left:
                    raise
        return None

    def _over_in(self, seconds: float) -> bool:
        """Wait; whether nothing more is to be evicted: the run ends, or is to be aborted."""
        if self.stopping.wait(seconds):
            return True
        now = time.monotonic()
        if now - self._asked >= POLL:
            self._asked, self._aborted = now, self.is_aborted()
        return self._aborted
