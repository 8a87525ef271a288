"""Removal plan of Kubernetes: kubeadm's reset, containerd's settings. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.facts.model import ManagedFile, NodeFacts
from gpufleet.formats.model import EditRecord
from gpufleet.kubernetes.containerd import plan_without
from gpufleet.kubernetes.notes import NODE
from gpufleet.kubernetes.record import KubernetesEntry
from gpufleet.kubernetes.settings import KubernetesSettings
from gpufleet.role.protocol import Removal, RemovalContext
from gpufleet.toolkit.runtime_model import RuntimePlan

# the order in which hosts leave: workers, control planes one by one, the first control plane last
Turn = Literal["worker", "control-plane", "last"]


@dataclass(frozen=True, slots=True)
class KubernetesRemoval(Removal):
    """Removal of the node, besides packages and files."""

    reset: bool = False
    authorities: tuple[str, ...] = ()  # of the cluster that the host is taken out of
    turn: Turn = "worker"
    whole: bool = True  # all control planes of the cluster leave it in this run
    network: str = ""  # flannel or none
    kubeconfig: str | None = None  # file on this machine that goes with the cluster
    containerd: RuntimePlan | None = None
    findings: tuple[Finding, ...] = ()

    def first(self) -> Mapping[str, object]:
        return {"take the host out of its cluster (kubeadm reset)": self.reset}

    def before(self) -> Mapping[str, object]:
        change = self.containerd and self.containerd.change
        return {"take Kubernetes' settings out of containerd's configuration": change}

    def facts_after(self, facts: NodeFacts) -> NodeFacts:
        """Without the kubelet's settings in a file that other roles have settings in too."""
        change = self.containerd.change if self.containerd else None
        if change is None:
            return facts
        digest = hashlib.sha256(change.after.encode()).hexdigest() if change.after else ""
        file = ManagedFile(change.path, change.after, change.mode, digest)
        return replace(facts, files={**facts.files, change.path: file})

    def describe(self) -> dict[str, Any]:
        return {"kubernetes": self.reset, "authorities": list(self.authorities)}


def plan_kubernetes_removal(
    settings: KubernetesSettings, context: RemovalContext[KubernetesEntry]
) -> KubernetesRemoval:
    """The reset of a node that gpufleet made, also of one that it only began to make."""
    facts, entry, place = context.facts, context.entry, context.place
    ours = bool(NODE & facts.cluster_host.paths)
    changes = entry.containerd.changes
    record = changes.record if changes else EditRecord()
    listed = CONTROL_PLANE in place.groups
    controls = entry.part == "control-plane" or (listed and not entry.part)
    whole = not place.absent
    leads = listed and place.position == 0
    last = whole and (leads or not place.control_planes)
    return KubernetesRemoval(
        reset=ours,
        authorities=tuple(sorted(facts.cluster_host.authorities)) if ours else (),
        turn=("last" if last else "control-plane") if controls else "worker",
        whole=whole,
        network=entry.network or settings.network,
        kubeconfig=settings.kubeconfig if controls and last else None,
        containerd=plan_without(facts, record, entry.containerd.config),
    )
