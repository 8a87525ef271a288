"""Nodes of one cluster during a run: out of service, drained, checked, and back."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.events import NAMESPACE as EVENTS
from gpufleet.upgrade.events import event_of
from gpufleet.upgrade.nodes import (
    OTHER_MACHINE,
    TAINT,
    is_left_behind,
    is_ready,
    leaving_behind,
    mark_of,
    why_not_ours,
)
from gpufleet.upgrade.operations.cordons import CordonedNodes
from gpufleet.upgrade.operations.evictions import CONFLICT, Evictions, Round, this_pod
from gpufleet.upgrade.operations.gpu_pod import POLL
from gpufleet.upgrade.operations.kured_lock import KuredLock
from gpufleet.upgrade.operations.listing import AT_ONCE, every_node, nodes_of, of_node, pods_of
from gpufleet.upgrade.operations.node_checks import NO_GPU
from gpufleet.upgrade.operations.readable import Unreadable, readable
from gpufleet.upgrade.pods import (
    Leaving,
    Policy,
    is_pod_ready,
    name_of,
    owner_name,
    sort_pods,
    tolerates,
)
from gpufleet.upgrade.states import Event

LEAVES = 120.0  # seconds for the pods of DaemonSets to end
NOTHING: Mapping[str, str] = {}
LOOKS, LONGEST = 4.0, 60.0  # evictions go on for so many times as long as a look took; seconds


class ClusterNodes(CordonedNodes):
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
            elif reason := self._written(host, self._why_not_begun(host, node)):
                found[host] = Round(given_up=reason)
            elif not why_not_ours(node, self.run):
                shown = self._shown(host, node)
                found |= {host: shown} if shown.given_up else {}
            elif self._waits_for_gpu(host, node):
                found[host] = Round(reasons=[NO_GPU])
            else:
                fresh.append(host)
        return found, fresh

    def _given_up(self, hosts: Collection[str]) -> dict[str, str]:
        """Those of the hosts that are being drained whose nodes others have changed, with why."""
        there = nodes_of(self.api, [self.nodes[host] for host in hosts], self._size)
        found = dict[str, str]()
        for host in hosts:
            node = there.get(self.nodes[host])
            reason = self._written(host, self._why_not_begun(host, node)) if node else ""
            found |= {host: reason} if reason else {}
        return found

    def _leaving(self, policies: Mapping[str, Policy], hosts: Sequence[str]) -> dict[str, Leaving]:
        """The pods of the hosts' nodes, sorted."""
        pods = pods_of(self.api, [self.nodes[host] for host in hosts], self._size)
        return {host: sort_pods(pods[self.nodes[host]], policies[host]) for host in hosts}

    def _emptied(self, host: str, leaving: Leaving) -> Round:
        return self._without_clients(host, leaving)

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
            node = self.api.find(f"/api/v1/nodes/{name}")
            if reason := self._written(host, self._why_not_ours(host, node)):
                return Round(given_up=reason)
            leaving = sort_pods(of_node(self.api, name), policy)
            done = self._without_clients(host, leaving) if leaving.empty else Round()
            if done.drained or done.given_up:
                return done
            if time.monotonic() > ends or self.stopping.wait(POLL):
                there = [*map(name_of, (*leaving.evict, *leaving.clients))]
                return Round(reasons=[*there, *leaving.waited, *leaving.going])

    @readable
    def leave_behind(self, host: str, reason: str) -> bool:
        """Keep everything away from the node, and say why on it. One that others took back gets
        its earlier state, once, and True; that of another machine stays as it is."""
        taken = False

        def left(node: Mapping[str, Any]) -> Any:
            nonlocal taken
            why = self._written(host, self._why_not_ours(host, node))
            taken = bool(why) and why != OTHER_MACHINE and not is_left_behind(node)
            if taken:
                return None if host in self.returned else self._returning(host, node)
            if why or is_left_behind(node):  # a user may be at work on it
                return None
            return leaving_behind(node, self.run, reason)

        try:
            self._patch(self.nodes[host], left)
        except ApiError as error:
            if not self._is_gone(host, error):
                raise
            return False
        return taken and host not in self.returned

    @readable
    def post_event(self, host: str, event: Event, reason: str) -> None:
        """Create an event about the node."""
        body = event_of(self.nodes[host], self.run, event, reason, time.time())
        if body:
            self.api.create(f"/api/v1/namespaces/{EVENTS}/events", body)

    def _without_clients(self, host: str, leaving: Leaving) -> Round:
        """Drained where none of the clients is on the node any more; else they are on their way."""
        owners = sorted({owner_name(pod) for pod in leaving.clients if is_pod_ready(pod)})
        self._taint(host, there=True, clients=owners)
        node = self._node(self.nodes[host])
        if reason := self._written(host, self._why_not_ours(host, node)):
            return Round(given_up=reason)
        for pod in leaving.clients:
            if pod["metadata"].get("deletionTimestamp"):
                continue
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
            try:
                self.api.delete(path, this_pod(metadata))
            except ApiError as error:
                if not error.is_missing and error.status != CONFLICT:
                    raise
        return Round(drained=not leaving.clients)


def _stays(leaving: Leaving) -> str:
    """The client that would use the GPUs during the change; "" if there is none."""
    if stays := [pod for pod in leaving.clients if tolerates(pod, TAINT)]:
        return (
            f"DaemonSet of {name_of(stays[0])} tolerates every taint: it would use the GPUs "
            "during the change"
        )
    return ""
