"""Whether the workloads of a release are ready. Pure.

What is expected of a DaemonSet is computed from the nodes as they are now: Ready, able to run its
pods, and of its own placement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from gpufleet.core.findings import Finding
from gpufleet.core.names import counted
from gpufleet.core.visible import Count
from gpufleet.helm.findings import readiness as findings
from gpufleet.helm.findings.releases import NO_PODS
from gpufleet.helm.release import Readiness, Unready
from gpufleet.helm.scheduling import fitting, why_none, why_not
from gpufleet.kube.facts import ClusterNode, Placement, Workload

VENDOR = "nvidia.com/"  # nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-1g.10gb
SHOWN = 10  # nodes of one finding


def unready(
    expected: Readiness, workloads: Sequence[Workload], nodes: Sequence[ClusterNode]
) -> list[Unready]:
    """The workloads of one release that are not ready, with reasons."""
    found = []
    for work in workloads:
        reason = _reason(work, expected, nodes)
        if reason:
            found.append(Unready(work, reason))
    return found


def _reason(work: Workload, expected: Readiness, nodes: Sequence[ClusterNode]) -> str:
    if not work.settled:
        return "its controller has not observed the update yet"
    wanted = work.wanted
    if work.kind == "DaemonSet":
        few = _too_few(work, expected, nodes)
        if few:
            return few
        wanted = _possible(work, nodes)
    if work.updated < wanted:
        return f"{work.updated} of {Count(wanted):pod is|pods are} updated"
    if work.old:
        return f"{Count(work.old):pod of the old version remains|pods of the old version remain}"
    if work.ready < wanted:
        return f"{work.ready} of {Count(wanted):pod is|pods are} ready"
    return ""


def _possible(work: Workload, nodes: Sequence[ClusterNode]) -> int:
    """How many of its desired pods a DaemonSet can have: its controller counts a node that is down
    for a while, or as long as it tolerates the taint of it."""
    usable = [node for node in nodes if node.usable]
    if len(usable) == len(nodes):
        return work.wanted
    return min(work.wanted, len(fitting(work.placement, usable)))


def _too_few(work: Workload, expected: Readiness, nodes: Sequence[ClusterNode]) -> str:
    """Why a DaemonSet wants fewer pods than there are usable nodes for it; "" if it does not."""
    usable = _usable(expected.nodes.get(work.name, ()), nodes)
    now = fitting(work.placement, usable)
    soon = fitting(work.placement, with_labels(expected.labels, usable))
    if usable and not now and not work.wanted:
        count = len(soon) or len(usable)
        return f"0 desired pods, expected {count}: {why_none(work.placement, nodes)}"
    if work.wanted < len(soon):
        return f"{counted(work.wanted, 'desired pod')}, expected {len(soon)}"
    return ""


def with_labels(labels: Mapping[str, str], nodes: Iterable[ClusterNode]) -> list[ClusterNode]:
    """The nodes with labels that they get soon; a label that is there stays as it is."""
    return [replace(node, labels={**labels, **node.labels}) for node in nodes]


def _usable(names: Collection[str], nodes: Iterable[ClusterNode]) -> list[ClusterNode]:
    return [node for node in nodes if node.name in names and node.usable]


def find_served(
    expected: Readiness, workloads: Sequence[Workload], nodes: Sequence[ClusterNode]
) -> list[ClusterNode]:
    """The nodes that have to have a pod of the release."""
    names = {
        node.name
        for work in workloads
        for node in fitting(work.placement, _usable(expected.nodes.get(work.name, ()), nodes))
    }
    return [node for node in nodes if node.name in names]


def not_offering(nodes: Iterable[ClusterNode]) -> list[str]:
    """The nodes that advertise no GPUs of any kind.

    A pod of the plugin is ready before it has found a GPU, and between two crashes.
    """
    return [
        node.name
        for node in nodes
        if not any(name.startswith(VENDOR) and count for name, count in node.allocatable.items())
    ]


def report_down(nodes: Iterable[ClusterNode]) -> list[Finding]:
    """A warning about the nodes that nothing is expected of, because they are not Ready."""
    down = [f"{node.name} ({node.down})" for node in nodes if node.down]
    return [findings.NODES_DOWN(nodes=_listed(down))] if down else []


def report_left_out(name: str, placement: Placement, nodes: Iterable[ClusterNode]) -> list[Finding]:
    """A warning about the nodes on which the DaemonSet `name` has no pod, but might have one."""
    why = {node.name: node.foreign or why_not(placement, node) for node in nodes if not node.down}
    out = [f"{node} ({reason})" for node, reason in why.items() if reason]
    return [findings.NODES_LEFT_OUT(daemonset=name, nodes=_listed(out))] if out else []


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def report_nodes(
    expected: Readiness, workloads: Sequence[Workload], nodes: Sequence[ClusterNode]
) -> list[Finding]:
    """Warnings about a release that is ready: empty DaemonSets, and nodes that have no pod."""
    found = report_down(nodes)
    for work in workloads:
        if work.kind != "DaemonSet" or not work.settled:
            continue
        name = f"{work.namespace}/{work.name}"
        if work.wanted == 0 and work.name not in expected.nodes:
            reason = why_none(work.placement, nodes)
            found.append(NO_PODS(daemonset=name, reason=reason))
        named = expected.nodes.get(work.name, ())
        found += report_left_out(
            name, work.placement, [node for node in nodes if node.name in named]
        )
    return found
