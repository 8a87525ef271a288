"""Findings about cluster nodes: why they are not drained, not checked, not marked."""

from __future__ import annotations

from gpufleet.core.findings import blocker

NODE_UNKNOWN = blocker(
    "GF067",
    "Node of the host is not known",
    "It is not known which node the host is, or whether it is one: {reason}. No node was drained.",
    "Restore access to its cluster, add it to the group gpu_cluster, or set kubernetes_kubeconfig "
    "for its control plane. "
    "Name the host as its node, or set ssh_hostname to an address of it. Delete the node from the "
    "clusters that the host has left. Copies of one image need a machine ID each: `rm -f "
    "/etc/machine-id /var/lib/dbus/machine-id && systemd-machine-id-setup`, then reboot.",
)

OPERATOR_MANAGES_DRIVER = blocker(
    "GF070",
    "GPU Operator installs the drivers of the cluster",
    "A ClusterPolicy of cluster {context} installs the driver.",
    "Change the version there (driver.version), or set driver.enabled=false.",
)

CHECK_REFUSED = blocker(
    "GF073",
    "Check pod cannot run",
    "After the change, a GPU pod in the namespace default checks the node. It cannot run: "
    "{problem}. The node was not changed.",
    "If a quota or a webhook is named above, allow the pod. If PodSecurity is: kubectl label "
    "namespace default --overwrite pod-security.kubernetes.io/enforce=baseline. If its image "
    "cannot be pulled, set upgrade_gpu_image to one that the nodes can reach.",
)

NODE_REFUSED = blocker(
    "GF278",
    "Cluster refuses to return the node to service",
    "The cluster refuses to return the node of {host} to service: {reason}. The node stays "
    "cordoned; its driver is either the new one, checked, or the earlier one.",
    "Remove what refuses it, such as an admission webhook or a missing permission, then run the "
    "same `gpufleet upgrade` again.",
)
