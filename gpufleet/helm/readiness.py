"""Whether the workloads of a release are ready. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.core.findings import Finding
from gpufleet.core.names import counted
from gpufleet.core.visible import Count
from gpufleet.helm.findings import releases as findings
from gpufleet.helm.release import Readiness, Unready
from gpufleet.helm.scheduling import why_none
from gpufleet.kube.facts import ClusterNode, Workload

VENDOR = "nvidia.com/"  # nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-1g.10gb


def unready(
    expected: Readiness, workloads: Sequence[Workload], nodes: Sequence[ClusterNode]
) -> list[Unready]:
    """The workloads of one release that are not ready, with reasons."""
    found = []
    for work in workloads:
        reason = _reason(work, expected.pods.get(work.name), nodes)
        if reason:
            found.append(Unready(work, reason))
    return found


def _reason(work: Workload, pods: int | None, nodes: Sequence[ClusterNode]) -> str:
    if not work.settled:
        return "its controller has not observed the update yet"
    if work.kind == "DaemonSet" and pods and work.wanted < pods:
        if work.wanted == 0:
            return f"0 desired pods, expected {pods}: {why_none(work.placement, nodes)}"
        return f"{counted(work.wanted, 'desired pod')}, expected {pods}"
    if work.updated < work.wanted:
        return f"{work.updated} of {Count(work.wanted):pod is|pods are} updated"
    if work.old:
        return f"{Count(work.old):pod of the old version remains|pods of the old version remain}"
    if work.ready < work.wanted:
        return f"{work.ready} of {Count(work.wanted):pod is|pods are} ready"
    return ""


def not_offering(expected: Readiness, nodes: Sequence[ClusterNode]) -> list[str]:
    """The nodes that should advertise GPUs and advertise none of any kind.

    A pod of the plugin is ready before it has found a GPU, and between two crashes.
    """
    offers = {
        node.name
        for node in nodes
        if any(name.startswith(VENDOR) and count for name, count in node.allocatable.items())
    }
    return [name for name in expected.offering if name not in offers]


def without_pods(
    expected: Readiness, workloads: Sequence[Workload], nodes: Sequence[ClusterNode]
) -> list[Finding]:
    """A warning for each DaemonSet with 0 desired pods that is not allowed to be empty."""
    return [
        findings.NO_PODS(
            daemonset=f"{work.namespace}/{work.name}", reason=why_none(work.placement, nodes)
        )
        for work in workloads
        if work.kind == "DaemonSet"
        and work.settled
        and work.wanted == 0
        and work.name not in expected.pods
    ]
