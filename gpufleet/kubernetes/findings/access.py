"""Findings about the access to a cluster and about its nodes and pods."""

from __future__ import annotations

from gpufleet.core.findings import blocker

ACCESS_UNUSABLE = blocker(
    "GF964",
    "Kubeconfig of the control plane is not usable",
    "The administrator's kubeconfig on the host is not one that kubeadm writes: {problem}.",
    "Look at it (/etc/kubernetes/admin.conf): gpufleet copies "
    "certificates and a server, and nothing that runs programs.",
)
KUBECONFIG_NOT_WRITTEN = blocker(
    "GF293",
    "Kubeconfig not written",
    "{path} on this machine was not written: {problem}.",
    "Correct the path or its permissions, or set kubernetes_kubeconfig to another one, and run "
    "again. The cluster itself is up.",
)
GPU_PODS_RUN = blocker(
    "GF955",
    "Pods use GPUs",
    "{count:pod uses|pods use} GPUs of this cluster: {names}.",
    "Let them end or delete them, or add --ignore-gpu-pods.",
)
GPU_PODS_UNKNOWN = blocker(
    "GF956",
    "Cannot check whether pods use GPUs",
    "The pods that use GPUs cannot be listed: {reason}",
    "Make the cluster reachable, or add --ignore-gpu-pods.",
)
NOT_NODES = blocker(
    "GF295",
    "Hosts are missing from their cluster",
    "The cluster has {nodes:node|nodes} for {hosts:host|hosts}; it knows no name or "
    "address of {names}.",
    "If the node was deleted manually, run `systemctl restart kubelet` on the host to register it "
    "again. Otherwise run `gpufleet cluster create INVENTORY`.",
)
NO_KUBECONFIG = blocker(
    "GF957",
    "No kubeconfig in the inventory",
    "No host of the group control_plane sets {key}.",
    "Set {key} to the path where the cluster's access is written.",
)
