"""Nodes of clusters: why they are not drained, not checked, not marked."""

from __future__ import annotations

from gpufleet.core.findings import blocker

NODE_UNKNOWN = blocker(
    "GF067",
    "Cluster of the node is not known",
    "The host is a node of a cluster, by a kubelet that runs on it or by its name, and which one "
    "is not known: no cluster of the inventory has a node with its machine id, or several machines "
    "have the same.",
    "Add the cluster to the group gpu_cluster, or set kubernetes_kubeconfig for its control plane: "
    "a node is drained before its driver is changed. Copies of one image need a machine id each: "
    "systemd-machine-id-setup.",
)

OPERATOR_DRIVER = blocker(
    "GF070",
    "GPU Operator installs the drivers of the cluster",
    "A ClusterPolicy of cluster {context} installs the driver.",
    "Change the version there (driver.version), or set driver.enabled=false.",
)

CHECK_REFUSED = blocker(
    "GF073",
    "Pod that checks the node cannot run",
    "A pod with a GPU is to run on the node after its change, in the namespace default, and "
    "cannot: {problem}. The node was not disturbed.",
    "Allow it where a quota or a webhook is named above. Where its image cannot be pulled, set "
    "upgrade_gpu_image to one that the nodes can reach.",
)

IMAGE_MISSING = blocker(
    "GF286",
    "Drained node cannot be checked",
    "The node was drained, and it is not sure that the pod which is to check it after its change "
    "could run: {problem}. It was not changed.",
    "Correct what is named above. Where its image cannot be pulled, set upgrade_gpu_image to one "
    "that the nodes can reach.",
)

NODE_ODD = blocker(
    "GF380",
    "Node reports what no node has",
    "The node was not drained: {problem}. The record of the run, which has what a node was before "
    "its cordon, does not take that.",
    "Find out what wrote it, the kubelet of the node or another program: "
    "`kubectl get node NODE -o yaml`.",
)

ABORT_WAITS = blocker(
    "GF074",
    "Run cannot be aborted while its cluster is away",
    "Hosts of run {run} are out of service: {hosts}. Their cluster is needed to return them to "
    "service: {problem}. Those of other clusters are returned.",
    "Repeat `gpufleet upgrade abort --run {run}` once the cluster answers. The nodes stay cordoned "
    "until then. If the cluster is gone, `gpufleet upgrade abort --run {run} --cluster-gone` ends "
    "the run: its nodes count as deleted.",
)

OTHER_NODE = blocker(
    "GF079",
    "Node with the machine id of the host has other names",
    "The host reports the machine id of node {node} in cluster {context}, and neither the name of "
    "the node nor one of its addresses is the name or the address of the host in the inventory. "
    "No node was drained.",
    "If {node} is this host, name the host as the node, or set ssh_hostname to one of its "
    "addresses. If not, find out why the host reports the machine id of another machine.",
)

MAYBE_A_NODE = blocker(
    "GF285",
    "Cluster that may have the host as a node cannot be asked",
    "Context {context} cannot be asked for its nodes, and no other cluster has this host as a "
    "node: whether it is to be drained is not known. {problem}",
    "Repair the access to the cluster, or use an inventory without it where the host is none of "
    "its nodes.",
)

SEVERAL_CLUSTERS = blocker(
    "GF273",
    "Host is a node of several clusters",
    "The host is node {nodes}; number of these that are ready: {ready}. Which of them runs its "
    "pods is not known. It was not changed.",
    "Delete the node from the clusters that the host has left, with `kubectl delete node`, or use "
    "an inventory without them.",
)

NODE_REFUSED = blocker(
    "GF278",
    "Cluster refuses to take a node back into service",
    "The cluster refuses to return the node of {host} to service: {reason}. It stays cordoned; its "
    "driver is changed and checked, or as before.",
    "Remove what refuses it, such as an admission webhook or a missing permission, then run "
    "`gpufleet upgrade resume --run {run}`. Or return the node by hand, as docs/how-to/upgrade.md "
    "says of a host that was left behind.",
)

UNMARKED = blocker(
    "GF279",
    "Nodes that are left behind do not say so",
    "The roll-back of {hosts} failed in run {run}, and their cluster does not answer: the nodes "
    "are cordoned and have no mark with the reason.",
    "Run `gpufleet upgrade resume --run {run}` once the cluster answers: it marks them and ends "
    "the run.",
)

CONTEXT_LOST = blocker(
    "GF272",
    "Kubeconfig of the run is gone",
    "Run {run} was planned for the cluster of {access}, which is not there now: {problem} {tried} "
    "No node was changed.",
    "Put that kubeconfig back, or one with a context for that cluster into KUBECONFIG, then repeat "
    "the command. If the cluster is gone, `gpufleet upgrade abort --run {run} --cluster-gone` ends "
    "the run.",
)

UID_UNKNOWN = blocker(
    "GF277",
    "Kubeconfig of a run without the UID of its cluster is gone",
    "Run {run} was planned for the cluster of {access}, which is not there now: {problem} The run "
    "does not know the UID of the cluster, so it takes no other context for it. No node was "
    "changed.",
    "Put a kubeconfig for that cluster there, with the same path and context, then repeat the "
    "command. If the cluster is gone, `gpufleet upgrade abort --run {run} --cluster-gone` ends the "
    "run.",
)

MAYBE_AWAY = blocker(
    "GF276",
    "Cluster of the run may be away",
    "{problem} Whether it is reached in another way is not known: {tried}.",
    "Repeat the command once these answer, or correct them. If the cluster of the run is gone, "
    "`gpufleet upgrade abort --run {run} --cluster-gone` ends the run.",
)

OTHER_CLUSTER = blocker(
    "GF288",
    "Context points to another cluster",
    "Context {context!r} of {paths} points to {url} now, which is not the cluster that run {run} "
    "was planned for. No node was changed.",
    "Point that context to the cluster of the run again, then repeat the command. If that cluster "
    "is gone, for example rebuilt, `gpufleet upgrade abort --run {run} --cluster-gone` ends the "
    "run: its nodes count as deleted, and one that is still there stays cordoned.",
)

UID_REFUSED = blocker(
    "GF275",
    "Context does not show which cluster it points to",
    "Context {context!r} of {paths} points to {url} now, where its user may not read the namespace "
    "kube-system: whether that is the cluster that run {run} was planned for is not known. No node "
    "was changed.",
    "Allow that user to get the namespace kube-system, or put a context of one who may into "
    "KUBECONFIG, then repeat the command. If the cluster of the run is gone, `gpufleet upgrade "
    "abort --run {run} --cluster-gone` ends the run.",
)
