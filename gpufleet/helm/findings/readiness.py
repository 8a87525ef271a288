"""Findings about what is expected of a release, and on which nodes."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

NODES_DOWN = warning(
    "GF817",
    "Nodes are not Ready",
    "Nothing is expected of these nodes, because they are not Ready: {nodes}.",
    "They get what they lack when they are Ready again; kubectl describe node NODE has the cause. "
    "A node that is gone for good: kubectl delete node NODE",
)
NODES_LEFT_OUT = warning(
    "GF809",
    "GPU nodes without a pod",
    "DaemonSet {daemonset} has no pod on these GPU nodes: {nodes}.",
    "No action required if that is intended. Otherwise label the nodes (kubectl label node NODE "
    "KEY=VALUE), or change nodeSelector, affinity or tolerations in the values of its release.",
)
NOWHERE = blocker(
    "GF816",
    "DaemonSet fits no GPU node",
    "DaemonSet {daemonset} of release {release} would have no pod: {reason}.",
    "Correct nodeSelector, affinity or tolerations in the values of the release, or label the "
    "nodes: kubectl label node NODE KEY=VALUE",
)
OPERATOR_SILENT = warning(
    "GF818",
    "Operator does not report",
    "{object} of release {release} has no status and no workload: no operator has acted on it.",
    "Read the log of the operator (kubectl -n {namespace} logs deployment/kube-prometheus-stack-"
    "operator), and check the result with `gpufleet verify`.",
)
