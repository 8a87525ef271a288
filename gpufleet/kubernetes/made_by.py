"""What made a host a node, or began to. Pure."""

from __future__ import annotations

from gpufleet.facts.model import NodeFacts
from gpufleet.kubernetes.notes import BEGUN, INSTALLING, JOINED, LEAVING
from gpufleet.kubernetes.record import KubernetesEntry

NODE = frozenset({BEGUN, JOINED, LEAVING})
K3S = ("/etc/rancher/k3s/", "/var/lib/rancher/k3s/")


def made_by(facts: NodeFacts) -> str:
    """kubeadm or k3s; "" for neither, and where a run was killed before it left a trace of which.

    The record says it once a run has ended; before that, what is on the host.
    """
    paths = facts.cluster_host.paths
    if paths.isdisjoint(NODE):
        return ""
    entry = facts.provenance.entry(KubernetesEntry)
    if entry.exists:
        return entry.distribution or "kubeadm"
    if any(path.startswith(K3S) for path in paths):
        return "k3s"
    of_kubeadm = not paths.isdisjoint(INSTALLING) or "kubelet" in facts.packages
    found = of_kubeadm or any(path.startswith("/etc/kubernetes/") for path in paths)
    return "kubeadm" if found else ""
