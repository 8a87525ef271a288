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

ABORT_WAITS = blocker(
    "GF074",
    "Run cannot be aborted while its cluster is away",
    "Hosts of run {run} are out of service: {hosts}. Returning them to service requires their "
    "cluster: {problem}. Those of other clusters are returned.",
    "Run `gpufleet upgrade abort --run {run}` again when the cluster responds. The nodes stay "
    "cordoned until then. If the cluster is gone, `gpufleet upgrade abort --run {run} "
    "--cluster-gone` ends the run: its nodes count as deleted.",
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
    "Remove what refuses it, such as an admission webhook or a missing permission, then run "
    "`gpufleet upgrade resume --run {run}`. Or return the node manually: see "
    "docs/how-to/upgrade.md.",
)

UNMARKED = blocker(
    "GF279",
    "Failed nodes are not marked",
    "The roll-back of {hosts} failed in run {run}, and their cluster does not respond: the nodes "
    "stay cordoned, without the annotation that gives the reason.",
    "Run `gpufleet upgrade resume --run {run}` when the cluster responds: it marks them and ends "
    "the run.",
)

CONTEXT_LOST = blocker(
    "GF272",
    "Kubeconfig of the run is gone",
    "Run {run} was planned for the cluster of {access}, which is no longer there: {problem} "
    "{tried} No node was changed.",
    "Restore that kubeconfig, or add one with a context for that cluster to KUBECONFIG, then run "
    "the command again. If the cluster is gone, `gpufleet upgrade abort --run {run} "
    "--cluster-gone` ends the run.",
)

UID_UNKNOWN = blocker(
    "GF277",
    "Kubeconfig is gone and the UID of its cluster unknown",
    "Run {run} was planned for the cluster of {access}, which is no longer there: {problem} The "
    "run did not record the cluster's UID, so it cannot use another context. No node was changed.",
    "Restore a kubeconfig for that cluster, with the same path and context, then run the command "
    "again. If the cluster is gone, `gpufleet upgrade abort --run {run} --cluster-gone` ends the "
    "run.",
)

MAYBE_AWAY = blocker(
    "GF276",
    "Cluster of the run is unreachable",
    "{problem} Other contexts that may lead to it could not be checked: {tried}.",
    "Run the command again when they respond, or correct them. If the cluster of the run is gone, "
    "`gpufleet upgrade abort --run {run} --cluster-gone` ends the run.",
)

OTHER_CLUSTER = blocker(
    "GF288",
    "Context points to another cluster",
    "Context {context!r} of {paths} now points to {url}, which is not the cluster that run {run} "
    "was planned for. No node was changed.",
    "Point that context to the cluster of the run again, then run the command again. If that "
    "cluster is gone, for example rebuilt, `gpufleet upgrade abort --run {run} --cluster-gone` "
    "ends the run: its nodes count as deleted, and one that is still there stays cordoned.",
)

UID_REFUSED = blocker(
    "GF275",
    "Cannot verify the cluster of the context",
    "Context {context!r} of {paths} now points to {url}, where its user may not read the "
    "namespace kube-system, so gpufleet cannot verify that it is the cluster of run {run}. No "
    "node was changed.",
    "Allow that user to get the namespace kube-system, or add a context of a user who may to "
    "KUBECONFIG, then run the command again. If the cluster of the run is gone, `gpufleet upgrade "
    "abort --run {run} --cluster-gone` ends the run.",
)
