"""The clusters of a run: which node is which host, and who may be changed."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.lease import DURATION, take_lease
from gpufleet.upgrade import findings
from gpufleet.upgrade.models import HostView
from gpufleet.upgrade.nodes import is_ready, machine_of, why_not_begun
from gpufleet.upgrade.operations.cluster import ClusterNodes, operator_owns_driver
from gpufleet.upgrade.operations.gpu_pod import remove_pods
from gpufleet.upgrade.operations.listing import AT_ONCE, every_node, pods_of
from gpufleet.upgrade.pods import Policy, ending, gpu_of, gpus_of

LOCK_TIMEOUT = 600  # seconds to wait for another run of gpufleet on a cluster
EXPIRY = f"that of a process which is gone is free {DURATION} s after its last sign of life"
NO_OTHERS: Mapping[str, Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class NodeAt:
    """A node, and where its cluster is."""

    node: str
    kubeconfig: str
    context: str
    ready: bool = True  # when the run was planned
    machine: str = ""  # its machine id; unknown to records of earlier versions
    offers: bool = False  # GPUs, when the run was planned

    @property
    def access(self) -> KubeAccess:
        return KubeAccess(self.kubeconfig, self.context)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def find_nodes(
    views: Sequence[HostView],
    accesses: Iterable[KubeAccess],
    known_as: Mapping[str, Sequence[str]],
) -> tuple[list[HostView], dict[str, NodeAt]]:
    """The views with what the clusters say of their nodes, and the nodes by host. `known_as`: names
    and addresses by which the inventory reaches each host: its machine id is what the host says of
    itself. A node may be one whose kubelet is stopped, or runs as a unit that no fact knows: of
    such hosts a cluster that does not answer says nothing. Raises ClusterProblem."""
    count = Counter(view.machine for view in views)
    wanted = [view for view in views if view.machine and count[view.machine] == 1]
    if not wanted:
        return _refused(views, {}, {}), {}
    places: dict[str, NodeAt] = {}
    reasons: dict[str, str] = {}
    for access in dict.fromkeys(accesses):
        api = ClusterApi(access)
        try:
            by_machine = _by_machine(every_node(api))
        except ClusterProblem:
            api.close()
            if any(view.kubelet for view in wanted):
                raise
            continue
        operator = operator_owns_driver(api)
        there = [
            (view, by_machine[view.machine])
            for view in wanted
            if view.name not in places and view.machine in by_machine
        ]
        for (view, node), is_one in zip(there, _same(there, known_as), strict=True):
            if not is_one and not view.kubelet:
                continue  # a plain host from the same image
            if not is_one:
                other = findings.OTHER_NODE(node=node["metadata"]["name"], context=api.context)
                reasons[view.name] = f"{other.code} {other.message}"
                continue
            where = (node["metadata"]["name"], access.kubeconfig, access.context)
            offers = bool(gpu_of(gpus_of(node)))
            places[view.name] = NodeAt(*where, is_ready(node), machine_of(node), offers)
            owned = findings.OPERATOR_DRIVER(context=api.context) if operator else None
            reasons[view.name] = f"{owned.code} {owned.message}" if owned else ""
            reasons[view.name] = reasons[view.name] or why_not_begun(node, "")
        api.close()
    return _refused(views, places, reasons), places


def ending_pods(
    places: Mapping[str, NodeAt], policies: Mapping[str, Policy]
) -> dict[str, Sequence[str]]:
    """By host, the pods that the drain of its node evicts and that may not come back. `policies`:
    of the hosts of which every pod leaves. Raises ClusterProblem."""
    found: dict[str, Sequence[str]] = {}
    for access in dict.fromkeys(places[host].access for host in policies):
        api = ClusterApi(access)
        hosts = {places[host].node: host for host in policies if places[host].access == access}
        for node, pods in pods_of(api, list(hosts), len(every_node(api))).items():
            if names := ending(pods, policies[hosts[node]]):
                found[hosts[node]] = names
        api.close()
    return found


def open_nodes(
    places: Mapping[str, NodeAt],
    run: str,
    say: Callable[[str], None],
    others: Mapping[str, Mapping[str, Any]] = NO_OTHERS,
) -> dict[str, ClusterNodes]:
    """The cluster of each host, with its lock held until this process ends. `others`: NodeAt of
    the hosts that the run leaves out. Raises ClusterProblem."""
    hosts: dict[KubeAccess, dict[str, str]] = {}
    for host, place in places.items():
        hosts.setdefault(place.access, {})[host] = place.node
    found = {}
    for access, nodes in hosts.items():
        api = ClusterApi(access)
        say(f"taking the lock of cluster {api.context}; {EXPIRY}")
        take_lease(api, LOCK_TIMEOUT, say)
        remove_pods(api)
        left = [place["node"] for place in others.values() if NodeAt(**place).access == access]
        machines = {host: places[host].machine for host in nodes}
        offering = [host for host in nodes if places[host].offers]
        cluster = ClusterNodes(api, run, nodes, left, machines=machines, offering=offering)
        found.update(dict.fromkeys(nodes, cluster))
    return found


def _refused(
    views: Sequence[HostView], places: Mapping[str, NodeAt], reasons: Mapping[str, str]
) -> list[HostView]:
    unknown = findings.NODE_UNKNOWN()
    result = []
    for view in views:
        reason = reasons.get(view.name, "")
        if view.kubelet and view.name not in places:
            reason = reason or f"{unknown.code} {unknown.message}"
        result.append(replace(view, refusals=(reason, *view.refusals)) if reason else view)
    return result


def _same(
    there: Sequence[tuple[HostView, Mapping[str, Any]]], known_as: Mapping[str, Sequence[str]]
) -> list[bool]:
    """Whether each host is reached at its node; side by side, because DNS is asked."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda pair: _is_one_of(known_as[pair[0].name], pair[1]), there))


def _is_one_of(names: Sequence[str], node: Mapping[str, Any]) -> bool:
    """Whether a node has one of these names or addresses, or an address that one of them has."""
    listed = (node.get("status") or {}).get("addresses") or ()
    known = {str(each.get("address")).lower() for each in listed}
    known.add(node["metadata"]["name"].lower())
    return not known.isdisjoint(name.lower() for name in names) or not known.isdisjoint(
        address for name in names for address in _addresses(name)
    )


def _addresses(name: str) -> list[str]:
    try:
        return [str(found[4][0]).lower() for found in socket.getaddrinfo(name, None)]
    except (OSError, UnicodeError):  # it is known to ssh alone
        return []


def _by_machine(nodes: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The nodes by machine id; copies of one image that have the same have none."""
    listed = list(nodes)
    count = Counter(map(machine_of, listed))
    return {machine: node for node in listed if count[machine := machine_of(node)] == 1}
