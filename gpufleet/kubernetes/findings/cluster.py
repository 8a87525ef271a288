"""Findings about the cluster that a host joins."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

NO_CONTROL_PLANE = blocker(
    "GF943",
    "No control plane in the inventory",
    "The group control_plane is missing or empty; a cluster starts there.",
    "Put one host into the group control_plane.",
)
SEVERAL_CONTROL_PLANES = blocker(
    "GF958",
    "Several control planes without an endpoint",
    "The group control_plane has {names}, and kubernetes_endpoint is not set: nodes and users need "
    "one address for all of them.",
    "Set kubernetes_endpoint to the address of your load balancer, virtual IP address or DNS name, "
    "or leave one host in the group control_plane.",
)
EVEN_CONTROL_PLANES = warning(
    "GF080",
    "Even number of control planes",
    "The group control_plane has {count} hosts: etcd tolerates the loss of {lost}, the same as "
    "with {fewer}.",
    "Use {fewer} or {more}.",
)
ENDPOINT_ANSWERS = blocker(
    "GF081",
    "Another cluster responds at the endpoint",
    "A Kubernetes API ({version}) responds at {endpoint}, but none of this run's control planes "
    "belongs to a cluster.",
    "Set kubernetes_endpoint to an address that leads only to these hosts. To extend the cluster "
    "that responds, include one of its control planes in the run.",
)
ENDPOINT_DIFFERS = blocker(
    "GF082",
    "Endpoint of a cluster cannot be changed",
    "The cluster's endpoint is {found}, kubernetes_endpoint is {wanted}. It is in the certificates "
    "and settings of all nodes.",
    'Set kubernetes_endpoint = "{found}", or destroy the cluster and create it again.',
)
NO_ENDPOINT = blocker(
    "GF083",
    "Cluster was created without an endpoint",
    "The cluster's API server is known as {found}, an address of only this host: no other control "
    "plane can join.",
    "Leave one host in the group control_plane, or destroy the cluster and create it again with "
    "kubernetes_endpoint.",
)
CLUSTER_DIFFERS = blocker(
    "GF960",
    "Setting of the cluster differs between hosts",
    "{key} differs from that of the control plane {control_plane}; all hosts of a cluster must "
    "have the same value.",
    "Set {key} once for all hosts of the cluster.",
)
VERSION_AHEAD = blocker(
    "GF961",
    "Host is newer than its control plane",
    "The host has or would get Kubernetes {installed}, its control plane has {cluster}: a newer "
    "kubelet must not join.",
    "Set kubernetes_version to {cluster} and run again.",
)
PART_CHANGED = blocker(
    "GF962",
    "Node has another role in its cluster",
    "The host joined as {before} and is {wanted} in the inventory.",
    "Put it back into its group, or take it out of the cluster first: gpufleet cluster destroy.",
)
PLANE_RESET = blocker(
    "GF292",
    "Control plane was reset outside gpufleet",
    "The host was the control plane, and /etc/kubernetes/kubelet.conf is missing: its cluster is "
    "gone.",
    "Restore /etc/kubernetes from a backup, or destroy what is left and start again: gpufleet "
    "cluster destroy.",
)
OTHER_CLUSTER = blocker(
    "GF963",
    "Host now belongs to another cluster",
    "The certificate authority on the host is not that of the cluster that gpufleet made it a node "
    "of, so it is not reset.",
    "If that cluster is no longer needed, run `kubeadm reset` on the host and remove "
    "/var/lib/gpufleet/kubernetes.*.",
)
NODE_ELSEWHERE = blocker(
    "GF290",
    "Node of another cluster than the inventory's",
    "gpufleet made the host a node of a cluster whose control plane is not {control_plane}, or "
    "whose control plane was destroyed since.",
    "Take the host out of that cluster first: gpufleet cluster destroy, with the inventory of that "
    "cluster where there is one.",
)
NO_CONTROL_PLANE_READY = blocker(
    "GF944",
    "Control plane is not part of the run, or failed",
    "To join, the host needs a token from {control_plane}, which is not part of this run or failed "
    "in it.",
    "Correct the errors of {control_plane} if any, then run again with --limit {control_plane} in "
    "addition.",
)
