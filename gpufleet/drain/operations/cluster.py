"""Takes nodes of one cluster out of service, drains, checks and returns them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpufleet.drain.nodes import (
    EVENTS_NAMESPACE,
    GONE,
    OTHER_MACHINE,
    STAYS_CORDONED,
    UNCORDONED,
    Node,
    Taken,
    gpu_of,
    gpus_of,
    has_taint,
    is_cordoned,
    is_left_behind,
    is_node_ready,
    is_other,
    is_our_cordon,
    taken_of,
    why_not_begun,
)
from gpufleet.drain.operations import check
from gpufleet.drain.operations.check import NODE_OFFERS_NO_GPU, Offers, Pull, why_not_as_before
from gpufleet.drain.operations.cordon import (
    CordonNotKept,
    NotOurs,
    cordon_node,
    remove_taint,
    set_taint,
    uncordon_node,
)
from gpufleet.drain.operations.evict import Evictions, Round, every_node, of_node, side_by_side
from gpufleet.drain.operations.kured import KuredLock
from gpufleet.drain.pods import (
    TAINT,
    Leaving,
    Policy,
    is_pod_ready,
    name_of,
    owner_name,
    sort_pods,
    tolerates_taint,
)
from gpufleet.kube.findings import LEASE_LOST
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError, is_final

TOLERATES_EVERY_TAINT = (
    "DaemonSet of {client} tolerates every taint and may use the GPUs during the change: "
    "restrict its tolerations, or remove it for the run"
)
LEAVES = 120.0  # seconds for the pods of DaemonSets to end
NOTHING: Mapping[str, str] = {}


@dataclass(slots=True)
class SeenNodes:
    """The nodes of a cluster. `away`: nodes that are not Ready, although the run did not take them
    out of service; `behind`: nodes that earlier runs left behind; `ours`: hosts whose nodes have a
    cordon or taint of gpufleet -> the run."""

    away: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)
    ours: dict[str, str] = field(default_factory=dict)


class ClusterNodes:
    """The nodes of one cluster that belong to hosts of a run. Several threads use it, but only one
    at a time for each node. Raises ClusterProblem if the API does not answer."""

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
        that were Ready when it was planned; `machines`: host -> machine id of its node at that
        time; `offering`: hosts whose nodes offered GPUs at that time."""
        self.api, self.run, self.nodes, self.others = api, run, nodes, others
        self.machines, self.offering = machines, offering
        self.kured = KuredLock(api, run)
        self.evictions = Evictions(api, lambda: self._is_over_in(0))
        self.goes_back = False  # True if the run undoes another one, which may have cost GPUs
        self.has_image: set[str] = set()  # hosts to which this process pulled the image
        self.unchecked: dict[str, str] = {}  # hosts that no GPU pod checked -> why
        self.stopping = threading.Event()  # set when the run must stop waiting
        self.is_aborted: Callable[[], bool] = lambda: False
        self._cordoned: set[str] = set()  # hosts whose nodes this process cordoned
        self._asked, self._aborted = 0.0, False  # time of the last request, and its answer

    def drain(self, policies: Mapping[str, Policy]) -> dict[str, Round]:
        """One pass over the nodes of several hosts: cordon them, evict pods, and last delete the
        clients of DaemonSets. Hosts not reached before the run ends have no round."""

        def look(host: str) -> Round | Leaving | None:
            if self._is_over_in(0):
                return None
            try:
                return self._taken_out(host, policies[host])
            except NotOurs as error:
                return Round(given_up=str(error))
            except ApiError as error:
                return Round(reasons=[str(error)])

        looks = side_by_side(look, list(policies))
        found = {host: each for host, each in looks.items() if isinstance(each, Round)}
        left = {host: each for host, each in looks.items() if isinstance(each, Leaving)}
        return found | self.evictions.evict(left)

    def _taken_out(self, host: str, policy: Policy) -> Round | Leaving:
        """Cordon a node if necessary. Returns the pods that must leave first, or the result of the
        pass. Raises NotOurs."""
        node, name = self._find(host), self.nodes[host]
        known = taken_of(node)
        if known.run == self.run or host in self._cordoned:
            self._check_ours(host, node)
            self.kured.keep()
        else:
            clients = sort_pods(of_node(self.api, name), policy).clients
            if why := why_not_begun(node, self.machines.get(host, "")):
                raise NotOurs(why)
            if stays := [name_of(pod) for pod in clients if tolerates_taint(pod, TAINT)]:
                raise NotOurs(TOLERATES_EVERY_TAINT.format(client=stays[0]))
            taken = known if is_our_cordon(node) else Taken(gpus=gpus_of(node))  # by an earlier run
            if host in self.offering and not self.goes_back and not gpu_of(taken.gpus):
                return Round(reasons=[NODE_OFFERS_NO_GPU])  # nothing to compare after the change
            node = cordon_node(self.api, node, replace(taken, run=self.run))
            self._cordoned.add(host)
        leaving = sort_pods(of_node(self.api, name), policy)
        return self._without_clients(node, leaving) if leaving.empty else leaving

    def clear(self, host: str, policy: Policy) -> Round:
        """Delete the clients of DaemonSets and wait for their end, or return why that failed."""
        ends = time.monotonic() + LEAVES
        try:
            while True:
                node = self._ours(host)
                leaving = sort_pods(of_node(self.api, self.nodes[host]), policy)
                if leaving.empty and (done := self._without_clients(node, leaving)).drained:
                    return done
                if time.monotonic() > ends or self.stopping.wait(check.CHECK_POLL_SECONDS):
                    there = [*map(name_of, (*leaving.evict, *leaving.clients))]
                    return Round(reasons=[*there, *leaving.waited, *leaving.going])
        except NotOurs as error:
            return Round(given_up=str(error))

    def _without_clients(self, node: Node, leaving: Leaving) -> Round:
        """Delete the clients of the GPUs. The node is drained when no client is left."""
        taken = taken_of(node)
        clients = {owner_name(pod) for pod in leaving.clients if is_pod_ready(pod)}
        if not clients <= {*taken.clients}:
            known = tuple(sorted(clients.union(taken.clients)))
            node = cordon_node(self.api, node, replace(taken, run=self.run, clients=known))
        set_taint(self.api, node, self.run)
        self.evictions.delete_clients(leaving.clients)
        return Round(drained=not leaving.clients)

    def check_refused(self, host: str, image: str) -> str | None:
        """Why the pod that checks the node would be refused, or None. Creates nothing."""
        try:
            return check.why_refused(self.api, self._find(host), image)
        except NotOurs as error:
            return str(error)

    def pull(self, host: str, image: str, seconds: float) -> Pull:
        """Pull the image of that pod to the node, unless it has no GPU to check."""
        try:
            node = self._find(host)
        except NotOurs as error:
            return Pull("node", str(error))
        if host not in self.offering and not gpu_of({**taken_of(node).gpus, **gpus_of(node)}):
            return Pull()
        found = check.pull_image(self.api, node, image, seconds, self._is_over_in)
        if found.came == "there":
            self.has_image.add(host)
        return found

    def check(self, host: str, image: str, seconds: float, offers: Offers = ()) -> str | None:
        """Wait until clients are back and the node offers its GPUs again, or one of `offers`, and
        run a pod with each kind of GPU. Returns why that failed, or None. If another user
        uncordoned the node, nothing is checked. Raises ClusterProblem if the API is silent."""
        self.unchecked.pop(host, None)
        ends = time.monotonic() + seconds
        while True:
            silent: ClusterProblem | None = None
            try:
                node = remove_taint(self.api, self._ours(host))
                offering = host in self.offering
                problem = why_not_as_before(self.api, node, offering=offering, offers=offers)
            except NotOurs as error:
                self.unchecked[host] = f"no GPU pod ran: {error}"
                return None
            except ClusterProblem as error:  # the API may run on this host
                if any(each.code == LEASE_LOST.code for each in error.findings):
                    raise  # another run is at work
                problem, silent = "; ".join(each.message for each in error.findings), error
            is_last = not problem or time.monotonic() >= ends
            if is_last or self.stopping.wait(check.CHECK_POLL_SECONDS):
                break
        if silent and not is_final(silent):
            raise silent
        if problem and not (problem == NODE_OFFERS_NO_GPU and self.goes_back):
            return problem  # before a roll-back, a user may have removed the plugin
        before = {} if offers else taken_of(node).gpus
        wanted = check.free_kinds(self.api, node, before or gpus_of(node))
        if not wanted:
            self.unchecked[host] = "no GPU pod ran: the node offers no GPU, or none that is free"
        pods = (
            check.run_pod(self.api, node, image, gpu, seconds, self.stopping.wait) for gpu in wanted
        )
        return next(filter(None, pods), None)

    def give_back(self, host: str) -> str:
        """Remove everything that the run wrote to a node. Returns a note, or "": the node is gone,
        or another user cordoned it too."""
        try:
            node = self._find(host)
        except NotOurs as error:
            return str(error)
        node = uncordon_node(self.api, remove_taint(self.api, node))
        self._cordoned.discard(host)
        if is_other(node, self.machines.get(host, "")):
            return OTHER_MACHINE
        return STAYS_CORDONED if is_cordoned(node) else ""

    def leave_behind(self, host: str, reason: str) -> None:
        """Keep all pods away from the node, and write the reason on it. If another user uncordoned
        it, everything that the run wrote is removed."""
        try:
            node = self._ours(host)
            if not is_left_behind(node):  # else a user may be working on it
                node = set_taint(self.api, node, self.run)
                cordon_node(self.api, node, taken_of(node), reason)
        except CordonNotKept:
            return  # it stays cordoned and tainted, without the reason
        except NotOurs:
            self.give_back(host)

    def look(self) -> SeenNodes:
        """Read all nodes of the cluster."""
        hosts = {node: host for host, node in self.nodes.items()}
        seen = SeenNodes()
        for node in every_node(self.api):
            name = node["metadata"]["name"]
            if name in hosts and (is_our_cordon(node) or has_taint(node)):
                seen.ours[hosts[name]] = taken_of(node).run
            if (name not in hosts and name not in self.others) or taken_of(node).run == self.run:
                continue
            if is_left_behind(node):
                seen.behind.append(name)
            elif not is_node_ready(node):
                seen.away.append(name)
        return seen

    def post_event(self, body: Mapping[str, Any]) -> None:
        """Create an event about a node."""
        self.api.create(f"/api/v1/namespaces/{EVENTS_NAMESPACE}/events", body)

    def _ours(self, host: str) -> Node:
        """The node, if it is cordoned by gpufleet. Raises NotOurs."""
        node = self._find(host)
        self._check_ours(host, node)
        return node

    def _check_ours(self, host: str, node: Node) -> None:
        """Raises NotOurs unless the node is still the host's and has gpufleet's cordon."""
        if is_other(node, self.machines.get(host, "")):
            raise NotOurs(OTHER_MACHINE)
        if not is_our_cordon(node):
            raise NotOurs(UNCORDONED)

    def _find(self, host: str) -> Node:
        """The host's node. Raises NotOurs if it is gone."""
        node = self.api.find(f"/api/v1/nodes/{self.nodes[host]}")
        if node is None:
            raise NotOurs(GONE)
        return node

    def _is_over_in(self, seconds: float) -> bool:
        """Wait. True if no more pods must be evicted, because the run ends or is aborted."""
        if self.stopping.wait(seconds):
            return True
        now = time.monotonic()
        if now - self._asked >= check.CHECK_POLL_SECONDS:
            self._asked, self._aborted = now, self.is_aborted()
        return self._aborted
