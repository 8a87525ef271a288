"""Nodes of clusters: why they are not drained, not checked, not marked."""

from __future__ import annotations

from gpufleet.core.findings import blocker

NODE_UNKNOWN = blocker(
    "GF067",
    "Cluster of the node is not known",
    "The host runs a kubelet or has the name of a node, but its cluster was not found: no cluster "
    "of the inventory has a node with its machine ID, or several machines share that ID.",
    "Add the cluster to the group gpu_cluster, or set kubernetes_kubeconfig for its control "
    "plane: a node is drained before its driver is changed. Copies of one image need a machine ID "
    "each: `rm -f /etc/machine-id /var/lib/dbus/machine-id && systemd-machine-id-setup`, then "
    "reboot.",
)

OPERATOR_DRIVER = blocker(
    "GF070",
    "GPU Operator installs the drivers of the cluster",
    "A ClusterPolicy of cluster {context} installs the driver.",
    "Change the version there (driver.version), or set driver.enabled=false.",
)

CHECK_REFUSED = blocker(
    "GF073",
    "Check pod cannot run",
    "After the change, a GPU pod in the namespace default checks the node. It cannot run: "
    "{problem}. The node was not disturbed.",
    "Allow it where a quota or a webhook is named above. Where its image cannot be pulled, set "
    "upgrade_gpu_image to one that the nodes can reach.",
)

IMAGE_MISSING = blocker(
    "GF286",
    "Check pod may not run on the drained node",
    "The node was drained, but gpufleet could not confirm that the check pod can run on it: "
    "{problem}. The node was not changed.",
    "Correct what is named above. Where its image cannot be pulled, set upgrade_gpu_image to one "
    "that the nodes can reach.",
)

OTHER_NODE = blocker(
    "GF079",
    "Node with the machine ID of the host has other names",
    "The host reports the machine ID of node {node} in cluster {context}, but neither the name "
    "nor an address of that node is the name or the address of the host in the inventory. No node "
    "was drained.",
    "If {node} is this host, name the host as the node, or set ssh_hostname to one of its "
    "addresses. If not, find out why the host reports the machine ID of another machine.",
)

MAYBE_A_NODE = blocker(
    "GF285",
    "Cannot check whether the host is a node",
    "The nodes of context {context} cannot be listed, and no other cluster has this host as a "
    "node, so it is not known whether to drain it. {problem}",
    "Restore access to the cluster. If the host is not one of its nodes, use an inventory without "
    "that cluster.",
)

SEVERAL_CLUSTERS = blocker(
    "GF273",
    "Host is a node of several clusters",
    "The host is registered as node {nodes}; Ready: {ready}. It is not known which of these runs "
    "its pods. The host was not changed.",
    "Delete the node from the clusters that the host has left, with `kubectl delete node`, or use "
    "an inventory without them.",
)

NODE_REFUSED = blocker(
    "GF278",
    "Cluster refuses to return the node to service",
    "The cluster refuses to return the node of {host} to service: {reason}. The node stays "
    "cordoned; its driver is either the new one, checked, or the earlier one.",
    "Remove what refuses it, such as an admission webhook or a missing permission, then run the "
    "same `gpufleet upgrade` again.",
)
