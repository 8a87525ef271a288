"""The clusters of a run: which node is which host, and who may be changed."""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from gpufleet.core.findings import Finding
from gpufleet.kube.kubeconfig import kubeconfig_paths
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.findings import nodes as findings
from gpufleet.upgrade.gpus import gpu_of, gpus_of
from gpufleet.upgrade.models import HostView
from gpufleet.upgrade.nodes import is_ready, machine_of, why_not_begun
from gpufleet.upgrade.operations.listing import AT_ONCE, every_node, of_node, side_by_side
from gpufleet.upgrade.operations.readable import Unreadable, readable
from gpufleet.upgrade.pods import Policy, ending

FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class NodeAt:
    """A node, and where its cluster is."""

    node: str
    kubeconfig: str
    context: str
    ready: bool = True  # when the run was planned
    machine: str = ""  # its machine id; unknown to records of earlier versions
    offers: bool = False  # GPUs, when the run was planned
    cluster: str = ""  # UID of its namespace kube-system; unknown to records of earlier versions

    @property
    def access(self) -> KubeAccess:
        return KubeAccess(self.kubeconfig, self.context)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Candidate(NamedTuple):
    """A node that a host is in one of the clusters."""

    place: NodeAt
    uid: str  # of the node: several contexts may lead to one cluster
    reason: str  # why it is not to be changed


@dataclass(slots=True)
class Found:
    """What the clusters say of hosts."""

    candidates: dict[str, list[Candidate]] = field(default_factory=dict)  # by host
    reasons: dict[str, str] = field(default_factory=dict)  # why a host is not to be changed
    silent: list[str] = field(default_factory=list)  # findings of clusters that do not answer


def find_nodes(
    views: Sequence[HostView],
    accesses: Iterable[KubeAccess],
    known_as: Mapping[str, Sequence[str]],
) -> tuple[list[HostView], dict[str, NodeAt]]:
    """The views with what the clusters say of their nodes, and the nodes by host. `known_as`: names
    and addresses by which the inventory reaches each host: its machine id is what the host says of
    itself. A node may be one whose kubelet is stopped, or runs as a unit that no fact knows: where
    a cluster does not answer, each host that is no node of another one may be its node."""
    found = Found()
    with_id = [view for view in views if view.machine]
    for access in dict.fromkeys(accesses) if with_id else ():
        try:
            with closing(ClusterApi(access)) as api:
                _find_in(api, access, with_id, known_as, found)
        except ClusterProblem as error:
            context = access.context or "of the kubeconfig"
            silent = findings.MAYBE_A_NODE(context=context, problem=error.findings[0].message)
            found.silent.append(_text(silent))
    places = _places(found)
    return [_refused(view, found, places) for view in views], places


@readable
def _find_in(
    api: ClusterApi,
    access: KubeAccess,
    views: Sequence[HostView],
    known_as: Mapping[str, Sequence[str]],
    found: Found,
) -> None:
    """Add what one cluster says. Raises ClusterProblem."""
    nodes = by_machine(every_node(api))
    operator = operator_owns_driver(api)
    access, uid = pinned(api, access), uid_of(api)
    count = Counter(view.machine for view in views)
    same_id = [each for each in views if each.machine in nodes]

    def one(view: HostView) -> tuple[Candidate | None, str]:
        same = nodes[view.machine]
        is_shared = count[view.machine] > 1 or len(same) > 1  # several say that they are it
        try:
            return _node_of(api, access, view, known_as[view.name], same, is_shared=is_shared)
        except Unreadable as error:
            return None, _text(error.findings[0])

    with ThreadPoolExecutor(AT_ONCE) as pool:  # DNS is asked
        for view, (node, reason) in zip(same_id, pool.map(one, same_id), strict=True):
            if not node:
                found.reasons |= {view.name: reason} if reason else {}
                continue
            if operator:
                node = node._replace(reason=_text(findings.OPERATOR_DRIVER(context=api.context)))
            node = node._replace(place=replace(node.place, cluster=uid))
            found.candidates.setdefault(view.name, []).append(node)


def _places(found: Found) -> dict[str, NodeAt]:
    """The node of each host. Where it is not known which one is, the reason is added."""
    places: dict[str, NodeAt] = {}
    for host, candidates in found.candidates.items():
        node, reason = _chosen(candidates)
        places |= {host: node} if node else {}
        found.reasons[host] = reason
    return places


def _chosen(candidates: Sequence[Candidate]) -> tuple[NodeAt | None, str]:
    """The node that a host is, and why it is not to be changed: a machine that moved to another
    cluster may be left in its first one, where it is not ready."""
    nodes = list({each.uid: each for each in reversed(candidates)}.values())[::-1]
    ready = [each for each in nodes if each.place.ready]
    if len(nodes) > 1 and len(ready) != 1:
        where = ", ".join(f"{each.place.node} of context {each.place.context}" for each in nodes)
        return None, _text(findings.SEVERAL_CLUSTERS(nodes=where, ready=len(ready)))
    node = ready[0] if len(nodes) > 1 else nodes[0]
    return node.place, node.reason


@readable
def _node_of(
    api: ClusterApi,
    access: KubeAccess,
    view: HostView,
    names: Sequence[str],
    nodes: Sequence[Mapping[str, Any]],
    *,
    is_shared: bool,
) -> tuple[Candidate | None, str]:
    """The node that a host is, of those with its machine id, and why it is not to be changed."""
    node = _same(names, nodes)
    if is_shared:
        return None, _text(findings.NODE_UNKNOWN()) if node else ""
    if node:
        place = _place(access, node)
        uid = str(node["metadata"].get("uid") or place)
        return Candidate(place, uid, why_not_begun(node)), ""
    if not view.kubelet:  # a plain host from the same image
        return None, ""
    name = nodes[0]["metadata"]["name"]
    return None, _text(findings.OTHER_NODE(node=name, context=api.context))


def _place(access: KubeAccess, node: Mapping[str, Any]) -> NodeAt:
    name, offers = node["metadata"]["name"], bool(gpu_of(gpus_of(node)))
    return NodeAt(name, access.kubeconfig, access.context, is_ready(node), machine_of(node), offers)


def pinned(api: ClusterApi, access: KubeAccess) -> KubeAccess:
    """The same access, whatever KUBECONFIG and the current context are later."""
    paths = kubeconfig_paths(access.kubeconfig).split(os.pathsep)
    return KubeAccess(os.pathsep.join(map(os.path.abspath, paths)), api.context)


def uid_of(api: ClusterApi) -> str:
    """What no other cluster has; "" for a user who may not read it."""
    try:
        return str(api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"])
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        return ""


def operator_owns_driver(api: ClusterApi) -> bool:
    """Whether a GPU Operator installs the drivers of a cluster."""
    try:
        found = api.list("/apis/nvidia.com/v1/clusterpolicies")
    except ApiError as error:
        if not error.is_missing and error.status != FORBIDDEN:
            raise
        return False
    wanted = [((each.get("spec") or {}).get("driver") or {}).get("enabled") for each in found]
    return any(each is not False for each in wanted)


def _text(finding: Finding) -> str:
    return f"{finding.code} {finding.message}"


def _refused(view: HostView, found: Found, places: Mapping[str, NodeAt]) -> HostView:
    """The host, with why the clusters keep it from being changed."""
    reasons = [each for each in (found.reasons.get(view.name),) if each]
    if view.name not in places and view.machine:
        reasons = reasons or found.silent
    if view.name not in places and view.kubelet:
        reasons = reasons or [_text(findings.NODE_UNKNOWN())]
    return replace(view, refusals=(*reasons, *view.refusals))


def ending_pods(
    places: Mapping[str, NodeAt], policies: Mapping[str, Policy]
) -> dict[str, Sequence[str]]:
    """By host, the pods that the drain of its node evicts and that may not come back. `policies`:
    of the hosts of which every pod leaves. Raises ClusterProblem."""
    found: dict[str, Sequence[str]] = {}
    for access in dict.fromkeys(places[host].access for host in policies):
        hosts = {places[host].node: host for host in policies if places[host].access == access}
        with closing(ClusterApi(access)) as api:
            found |= _ending_in(api, hosts, policies)
    return found


@readable
def _ending_in(
    api: ClusterApi, hosts: Mapping[str, str], policies: Mapping[str, Policy]
) -> dict[str, Sequence[str]]:
    """`hosts`: by node."""
    listed = side_by_side(lambda node: of_node(api, node), list(hosts))
    ends = {hosts[node]: ending(pods, policies[hosts[node]]) for node, pods in listed.items()}
    return {host: names for host, names in ends.items() if names}


def _same(names: Sequence[str], nodes: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The node that has one of these names or addresses, or an address that one of them has."""
    wanted = {name.lower() for name in names}
    if found := _known(wanted, nodes):
        return found
    return _known({address for name in names for address in addresses_of(name)}, nodes)


def _known(wanted: Collection[str], nodes: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    for node in nodes:
        listed = (node.get("status") or {}).get("addresses") or ()
        known = {str(each.get("address")).lower() for each in listed}
        if not known.union((node["metadata"]["name"].lower(),)).isdisjoint(wanted):
            return node
    return None


def addresses_of(name: str) -> list[str]:
    """The addresses of a host by its name; none where only ssh knows it."""
    try:
        return [str(found[4][0]).lower() for found in socket.getaddrinfo(name, None)]
    except (OSError, UnicodeError):
        return []


def by_machine(nodes: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The nodes by machine id, which copies of one image share."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for node in nodes:
        found.setdefault(machine_of(node), []).append(node)
    return found
