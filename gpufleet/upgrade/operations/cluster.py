"""Nodes of one cluster during a run: out of service, drained, checked, and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gpufleet.kube.operations.api import ApiError, ClusterApi
from gpufleet.upgrade.events import NAMESPACE as EVENTS
from gpufleet.upgrade.events import event_of
from gpufleet.upgrade.nodes import (
    MARK_REFUSED,
    TAINT,
    cordoning,
    is_left_behind,
    is_marked,
    is_ready,
    leaving_behind,
    left_on,
    mark_of,
    marking,
    returning,
    tainting,
    unmarking,
    why_not_begun,
    why_not_ours,
)
from gpufleet.upgrade.operations.evictions import CONFLICT, MISSING, Evictions, Round, this_pod
from gpufleet.upgrade.operations.gpu_pod import POLL
from gpufleet.upgrade.operations.kured_lock import KuredLock
from gpufleet.upgrade.operations.listing import AT_ONCE, every_node, nodes_of, of_node, pods_of
from gpufleet.upgrade.operations.node_checks import NO_GPU, CheckedNodes
from gpufleet.upgrade.operations.readable import Unreadable, readable
from gpufleet.upgrade.pods import (
    Leaving,
    Policy,
    gpu_of,
    gpus_of,
    is_pod_ready,
    name_of,
    owner_name,
    sort_pods,
    tolerates,
)
from gpufleet.upgrade.states import Event

LEAVES = 120.0  # seconds for the pods of DaemonSets to end
MEANWHILE = "the node changed in the moment of its cordon"
NOTHING: Mapping[str, str] = {}
LOOKS, LONGEST = 4.0, 60.0  # evictions go on for so many times as long as a look took; seconds


class ClusterNodes(CheckedNodes):
    """The nodes of one cluster that belong to hosts of a run; used by several threads, one for each
    node at a time. Raises ClusterProblem where the API does not answer."""

    def __init__(
        self,
        api: ClusterApi,
        run: str,
        nodes: Mapping[str, str],
        others: Collection[str] = (),
        *,
        machines: Mapping[str, str] = NOTHING,
        offering: Collection[str] = (),
    ) -> None:
        """`nodes`: host -> name of its node; `others`: nodes of hosts that the run leaves out, and
        that were Ready when it was planned; `machines`: host -> machine id that its node had then;
        `offering`: hosts whose nodes offered GPUs then."""
        super().__init__(api, run, nodes, machines, offering)
        self.others = others
        self._begun: set[str] = set()  # hosts whose nodes had the mark of the run in this process
        self.evictions = Evictions(api, self._over_in, self._given_up)
        self.kured = KuredLock(api, run)
        self._size = 0  # of the cluster, in nodes, once it is known
        self.behind: tuple[str, ...] = ()  # nodes that earlier runs left behind, by the last look

    def drain(self, policies: Mapping[str, Policy]) -> dict[str, Round]:
        """One round with several hosts: cordon their nodes, evict pods; last let the clients of
        DaemonSets go. What is wrong with one node is the reason of that one. Hosts that were not
        looked at before the run ends have no round."""
        try:
            return self._drained(policies)
        except Unreadable:
            if len(policies) == 1:
                raise
        found = dict[str, Round]()  # an object of one of them has a shape of its own
        for host, policy in policies.items():
            if self._over_in(0):
                break
            try:
                found |= self._drained({host: policy})
            except Unreadable as error:
                found[host] = Round(reasons=[each.message for each in error.findings])
        return found

    @readable
    def _drained(self, policies: Mapping[str, Policy]) -> dict[str, Round]:
        """As `drain`. Raises Unreadable where one of the objects is."""
        began = time.monotonic()
        found, fresh = self._looked_at(policies)
        leaving = self._leaving(policies, [host for host in policies if host not in found])
        found |= {host: Round(given_up=why) for host in leaving if (why := _stays(leaving[host]))}
        begun = self._each(self._cordoned, [host for host in fresh if host not in found])
        found |= {host: each for host, each in begun.items() if each.given_up or each.reasons}
        late = [host for host in begun if host not in found]  # some came before it was cordoned
        leaving |= self._leaving(policies, late)
        empty = [host for host in leaving if leaving[host].empty and host not in found]
        found |= self._each(lambda host: self._emptied(host, leaving[host]), empty)
        left = {host: each for host, each in leaving.items() if host not in found}
        look = time.monotonic() - began
        return found | self.evictions.evict(left, min(look * LOOKS, LONGEST))

    def _looked_at(self, hosts: Collection[str]) -> tuple[dict[str, Round], list[str]]:
        """The hosts whose nodes cannot be drained, and those whose nodes are to be cordoned."""
        there = nodes_of(self.api, [self.nodes[host] for host in hosts], self._size)
        found, fresh = dict[str, Round](), list[str]()
        for host in hosts:
            node = there.get(self.nodes[host])
            if node is None:
                found[host] = Round(reasons=[why_not_ours(node, self.run)])
            elif reason := self._why_not_begun(host, node):
                found[host] = Round(given_up=reason)
            elif not why_not_ours(node, self.run):
                self._begun.add(host)
            elif self._waits_for_gpu(host, node):
                found[host] = Round(reasons=[NO_GPU])
            else:
                fresh.append(host)
        return found, fresh

    def _why_not_begun(self, host: str, node: Mapping[str, Any]) -> str:
        """Why a node is not to be drained, or not any more; "" if it may be."""
        lost = self._why_not_ours(host, node) if host in self._begun else ""
        return lost or why_not_begun(node, self.run, self.machines.get(host, ""))

    def _given_up(self, hosts: Collection[str]) -> dict[str, str]:
        """Those of the hosts that are being drained whose nodes others have changed, with why."""
        there = nodes_of(self.api, [self.nodes[host] for host in hosts], self._size)
        found = dict[str, str]()
        for host in hosts:
            node = there.get(self.nodes[host])
            reason = self._why_not_begun(host, node) if node else ""
            found |= {host: reason} if reason else {}
        return found

    def _leaving(self, policies: Mapping[str, Policy], hosts: Sequence[str]) -> dict[str, Leaving]:
        """The pods of the hosts' nodes, sorted."""
        pods = pods_of(self.api, [self.nodes[host] for host in hosts], self._size)
        return {host: sort_pods(pods[self.nodes[host]], policies[host]) for host in hosts}

    def _emptied(self, host: str, leaving: Leaving) -> Round:
        return Round(drained=self._clients_left(self.nodes[host], leaving))

    def _each(self, call: Callable[[str], Round], hosts: Sequence[str]) -> dict[str, Round]:
        """Call a function for each host, side by side; a refusal of the API is its reason."""

        def one(host: str) -> Round:
            try:
                return call(host)
            except ApiError as error:
                return Round(reasons=[str(error)])

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return dict(zip(hosts, pool.map(one, hosts), strict=True))

    @readable
    def away(self) -> list[str]:
        """Nodes that are not Ready any more, though the run has not taken them out of service.
        Those that earlier runs left behind are `behind` instead: they do not come back."""
        ours = {*self.nodes.values(), *self.others}
        listed = every_node(self.api)
        self._size = len(listed)
        away, behind = list[str](), list[str]()
        for node in listed:
            name = node["metadata"]["name"]
            if name not in ours or mark_of(node).get("run") == self.run:
                continue
            if is_left_behind(node):
                behind.append(name)
            elif not is_ready(node):
                away.append(name)
        self.behind = tuple(behind)
        return away

    @readable
    def clear(self, host: str, policy: Policy) -> Round:
        """Let the clients of DaemonSets go and wait for their end; or why they did not."""
        name = self.nodes[host]
        ends = time.monotonic() + LEAVES
        while True:
            if reason := self._why_not_ours(host, self.api.find(f"/api/v1/nodes/{name}")):
                return Round(given_up=reason)
            leaving = sort_pods(of_node(self.api, name), policy)
            if leaving.empty and self._clients_left(name, leaving):
                return Round(drained=True)
            if time.monotonic() > ends or self.stopping.wait(POLL):
                there = [*map(name_of, (*leaving.evict, *leaving.clients))]
                return Round(reasons=[*there, *leaving.waited, *leaving.going])

    @readable
    def give_back(self, host: str) -> str:
        """Give the node its earlier state; one that was deleted has none. What may be left of the
        run on a node whose mark others removed; "" if nothing."""
        name, left = self.nodes[host], ""
        if before := self.api.find(f"/api/v1/nodes/{name}"):
            self._patch(name, lambda node: returning(node, self.run))
            if mark_of(before).get("run") != self.run:
                was_ours = host in self._begun or self.was_drained(host)
                left = left_on(self._node(name), was_ours=was_ours)
        self._begun.discard(host)
        return left

    @readable
    def leave_behind(self, host: str, reason: str) -> None:
        """Keep everything away from the node, and say why on it."""
        if self.api.find(f"/api/v1/nodes/{self.nodes[host]}"):
            self._patch(self.nodes[host], lambda node: leaving_behind(node, self.run, reason))

    @readable
    def post_event(self, host: str, event: Event, reason: str) -> None:
        """Create an event about the node."""
        body = event_of(self.nodes[host], self.run, event, reason, time.time())
        if body:
            self.api.create(f"/api/v1/namespaces/{EVENTS}/events", body)

    def _cordoned(self, host: str) -> Round:
        """Mark a node, then cordon it: nothing would know later whose a cordon without the mark is.
        It is given up where others were faster, or the mark is refused."""
        name, refused = self.nodes[host], Round(given_up=MARK_REFUSED)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

        def written(make: Callable[[Mapping[str, Any]], Any]) -> Mapping[str, Any] | None:
            def patch(found: Mapping[str, Any]) -> Any:
                if self._why_not_begun(host, found) or self._waits_for_gpu(host, found):
                    return None
                return make(found)

            return self._patch(name, patch)

        def cordon(found: Mapping[str, Any]) -> Any:
            is_there = is_marked(found, self.run, since)
            return cordoning(found, self.run, since, gpus_of(found)) if is_there else None

        marked = written(lambda found: marking(found, self.run, since))
        if marked is not None and not is_marked(marked, self.run, since):
            if mark_of(marked):
                self.api.merge(f"/api/v1/nodes/{name}", unmarking(marked))
            return refused
        cordoned = written(cordon)
        if cordoned is not None and why_not_ours(cordoned, self.run):
            return refused
        node = self._node(name)
        if not why_not_ours(node, self.run):
            self._begun.add(host)
            return Round()
        if given_up := self._why_not_begun(host, node):
            return Round(given_up=given_up)
        if marked is not None and not is_marked(node, self.run, since):
            return refused
        return Round(reasons=[NO_GPU if self._waits_for_gpu(host, node) else MEANWHILE])

    def _waits_for_gpu(self, host: str, node: Mapping[str, Any]) -> bool:
        """Whether a node is to offer GPUs again before it is cordoned: else it is not known what it
        has to offer after its change."""
        return host in self.offering and not self.goes_back and not gpu_of(gpus_of(node))

    def _clients_left(self, name: str, leaving: Leaving) -> bool:
        """Whether none of the clients is on the node any more; else they are on their way."""
        owners = sorted({owner_name(pod) for pod in leaving.clients if is_pod_ready(pod)})
        self._patch(name, lambda node: tainting(node, self.run, there=True, clients=owners))
        if why_not_ours(self._node(name), self.run):  # the next look says why
            return False
        for pod in leaving.clients:
            if pod["metadata"].get("deletionTimestamp"):
                continue
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            try:
                self.api.delete(path, this_pod(metadata))
            except ApiError as error:
                if error.status not in (MISSING, CONFLICT):
                    raise
        return not leaving.clients


def _stays(leaving: Leaving) -> str:
    """The client that would use the GPUs during the change; "" if there is none."""
    if stays := [pod for pod in leaving.clients if tolerates(pod, TAINT)]:
        return (
            f"DaemonSet of {name_of(stays[0])} tolerates every taint: it would use the GPUs "
            "during the change"
        )
    return ""
