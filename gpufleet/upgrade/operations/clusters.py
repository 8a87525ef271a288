"""Finds the node of each host in the clusters of a run, and opens the clusters."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from gpufleet.core.findings import Finding
from gpufleet.drain.nodes import (
    Node,
    gpu_of,
    gpus_of,
    is_node_ready,
    is_our_cordon,
    machine_of,
    why_not_begun,
)
from gpufleet.drain.operations.check import remove_pods
from gpufleet.drain.operations.cluster import ClusterNodes
from gpufleet.drain.operations.evict import every_node, pods_of, side_by_side
from gpufleet.drain.pods import Leaving, Policy, sort_pods
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.lease import take_lease
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.findings import nodes as findings
from gpufleet.upgrade.models import HostView

HTTP_FORBIDDEN = 403
OPERATOR_DRIVER_LABEL = "nvidia.com/gpu.deploy.driver"
LOCK_TIMEOUT = 120  # seconds: a killed run's lock is free after 60; an upgrade takes hours

KnownAs = Mapping[str, Sequence[str]]  # host -> names and addresses by which it is reached
Places = Mapping[str, "NodeAt"]


@dataclass(frozen=True, slots=True)
class NodeAt:
    """A node, and the access to its cluster. `uid`: identifies the cluster, as several contexts may
    lead to it; `reason`: why the node must not be changed."""

    node: str
    access: KubeAccess
    ready: bool = True
    machine: str = ""  # machine id
    offers: bool = False  # GPUs
    ours: bool = False  # it has our cordon
    uid: str = ""
    reason: str | None = None


def find_nodes(
    views: Sequence[HostView], accesses: Iterable[KubeAccess], known_as: KnownAs
) -> tuple[list[HostView], dict[str, NodeAt]]:
    """The views with findings about their nodes, and the nodes by host, matched by machine id. A
    host may be a node although its kubelet is stopped or runs in an unknown unit. So if a cluster
    does not answer, every host without a node in another cluster may be one of its nodes."""
    candidates = dict[str, list[NodeAt | Finding]]()
    silent = list[Finding]()
    with_id = [view for view in views if view.machine]
    for access in dict.fromkeys(accesses) if with_id else ():
        try:
            with closing(ClusterApi(access)) as api:
                found = _find_in(api, access, with_id, known_as)
        except ClusterProblem as error:
            context = access.context or "of the kubeconfig"
            why = error.findings[0].message.rstrip(".")
            reason = f"the nodes of context {context} cannot be listed ({why})"
            silent.append(findings.NODE_UNKNOWN(reason=reason))
            continue
        for host, candidate in found.items():
            candidates.setdefault(host, []).append(candidate)
    places = dict[str, NodeAt]()
    seen = []
    for view in views:
        chosen = _chosen(candidates.get(view.name, ()))
        if isinstance(chosen, NodeAt):
            places[view.name] = chosen
            reasons = [chosen.reason] if chosen.reason else []
            taken = view.taken or chosen.ours
            seen.append(replace(view, refusals=(*reasons, *view.refusals), taken=taken))
            continue
        refused = [chosen] if chosen else (silent if view.machine else [])
        if not refused and view.kubelet:
            why = "it runs a kubelet, and no cluster of the inventory has its machine ID"
            refused = [findings.NODE_UNKNOWN(reason=why)]
        reasons = [each.text for each in refused]
        unplaced = "; ".join(reasons)
        seen.append(replace(view, refusals=(*reasons, *view.refusals), unplaced=unplaced))
    return seen, places


def _find_in(
    api: ClusterApi, access: KubeAccess, views: Sequence[HostView], known_as: KnownAs
) -> dict[str, NodeAt | Finding]:
    """Host -> its node in one cluster, or why it is not known. Raises ClusterProblem."""
    nodes = dict[str, list[Node]]()
    for node in every_node(api):
        nodes.setdefault(machine_of(node), []).append(node)
    owner = findings.OPERATOR_MANAGES_DRIVER(context=api.context).text if owns_driver(api) else ""
    count = Counter(view.machine for view in views)
    same_id = {view.name: view for view in views if view.machine in nodes}
    named = side_by_side(  # uses DNS
        lambda host: _same(known_as[host], nodes[same_id[host].machine]), list(same_id)
    )
    found = dict[str, NodeAt | Finding]()
    for host, same in named.items():
        there = nodes[same_id[host].machine]
        if count[same_id[host].machine] > 1 or len(there) > 1:  # several hosts claim it
            if same:
                found[host] = findings.NODE_UNKNOWN(reason="several machines share its ID")
        elif same:
            found[host] = NodeAt(
                same["metadata"]["name"],
                KubeAccess(access.kubeconfig, api.context),
                is_node_ready(same),
                machine_of(same),
                bool(gpu_of(gpus_of(same))),
                is_our_cordon(same),
                same["metadata"].get("uid", ""),
                ("" if _keeps_driver(same, same_id[host]) else owner) or why_not_begun(same),
            )
        elif same_id[host].kubelet:  # else a plain host from the same image
            name = there[0]["metadata"]["name"]
            why = f"node {name} of cluster {api.context} has its machine ID, and other names"
            found[host] = findings.NODE_UNKNOWN(reason=why)
    return found


def _keeps_driver(node: Node, view: HostView) -> bool:
    """True if the GPU Operator found the host's own driver, and installs none there.

    Source: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/release-notes.html
    (the driver container "will auto-disable itself", read 2026-11-28)
    """
    labels = node["metadata"].get("labels") or {}
    return bool(view.before) and labels.get(OPERATOR_DRIVER_LABEL) == "pre-installed"


def _chosen(candidates: Sequence[NodeAt | Finding]) -> NodeAt | Finding | None:
    """The node of a host, or why it is not known. A machine that moved to another cluster may
    still have a node in its first cluster, which is not Ready."""
    every = [each for each in candidates if isinstance(each, NodeAt)]
    nodes = list({each.uid or each.access: each for each in reversed(every)}.values())[::-1]
    ready = [each for each in nodes if each.ready]
    if not nodes:
        return candidates[-1] if candidates else None
    if len(nodes) == 1 or len(ready) == 1:
        return (ready or nodes)[0]
    where = ", ".join(f"{each.node} of context {each.access.context}" for each in nodes)
    why = f"it is registered as node {where}; Ready: {len(ready)}"
    return findings.NODE_UNKNOWN(reason=why)


def _same(names: Sequence[str], nodes: Sequence[Node]) -> Node | None:
    """The node that has one of these names or addresses, or an address that a name resolves to."""
    wanted = {name.lower() for name in names}
    if found := _known(wanted, nodes):
        return found
    return _known({address for name in names for address in addresses_of(name)}, nodes)


def _known(wanted: Collection[str], nodes: Sequence[Node]) -> Node | None:
    for node in nodes:
        listed = (node.get("status") or {}).get("addresses") or ()
        known = {node["metadata"]["name"].lower(), *(each["address"].lower() for each in listed)}
        if not known.isdisjoint(wanted):
            return node
    return None


def addresses_of(name: str) -> list[str]:
    """The addresses that a host's name resolves to. Empty if only ssh knows the name."""
    try:
        return [str(found[4][0]).lower() for found in socket.getaddrinfo(name, None)]
    except (OSError, UnicodeError):
        return []


def owns_driver(api: ClusterApi) -> bool:
    """True if a GPU Operator installs the drivers of a cluster."""
    try:
        found = api.list("/apis/nvidia.com/v1/clusterpolicies")
    except ApiError as error:
        if not error.is_missing and error.status != HTTP_FORBIDDEN:
            raise
        return False
    wanted = [((each.get("spec") or {}).get("driver") or {}).get("enabled") for each in found]
    return any(each is not False for each in wanted)


def open_clusters(
    places: Places, run: str, hosts: Collection[str], say: Callable[[str], None]
) -> dict[str, ClusterNodes]:
    """The cluster of each host that is a node. Its Lease is held until this process ends. Raises
    ClusterProblem."""
    found: dict[str, ClusterNodes] = {}
    for access in dict.fromkeys(places[host].access for host in hosts if host in places):
        there = {host: place for host, place in places.items() if place.access == access}
        mine = {host: place for host, place in there.items() if host in hosts}
        api = ClusterApi(access)
        say(f"taking the lock of cluster {api.context}; a dead process's lock expires soon")
        take_lease(api, LOCK_TIMEOUT, say)
        remove_pods(api)  # of a killed process
        cluster = ClusterNodes(
            api,
            run,
            {host: place.node for host, place in mine.items()},
            [place.node for host, place in there.items() if host not in hosts and place.ready],
            machines={host: place.machine for host, place in mine.items()},
            offering=[host for host, place in mine.items() if place.offers],
        )
        found |= dict.fromkeys(mine, cluster)
    return found


def leaving_pods(places: Places, policies: Mapping[str, Policy]) -> dict[str, Leaving]:
    """Host -> the pods that its drain evicts or waits for. Raises ClusterProblem."""
    found: dict[str, Leaving] = {}
    for access in dict.fromkeys(places[host].access for host in policies):
        hosts = [host for host in policies if places[host].access == access]
        with closing(ClusterApi(access)) as api:
            pods = pods_of(api, {host: places[host].node for host in hosts})
        found |= {host: sort_pods(pods[host], policies[host]) for host in hosts}
    return found
