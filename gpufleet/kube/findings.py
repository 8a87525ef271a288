"""Findings about reaching a Kubernetes cluster and reading it."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

KUBECONFIG_MISSING = Kind(
    "GF860",
    Severity.BLOCKER,
    "There is no kubeconfig",
    "No kubeconfig file was found: {paths}.",
    "Set cluster_kubeconfig to the file that reaches the cluster, or set KUBECONFIG.",
)
KUBECONFIG_INVALID = Kind(
    "GF861",
    Severity.BLOCKER,
    "The kubeconfig cannot be used",
    "The kubeconfig {path} cannot be used: {reason}.",
    "Try it by hand: kubectl --kubeconfig {path} get nodes",
)
CONTEXT_UNKNOWN = Kind(
    "GF862",
    Severity.BLOCKER,
    "The kubeconfig has no such context",
    "The kubeconfig {path} has no context {context!r}. It has: {known}.",
    "Set cluster_context to one of them. {suggestion}",
)
API_UNREACHABLE = Kind(
    "GF863",
    Severity.BLOCKER,
    "The API server cannot be reached",
    "The API server of context {context!r} at {url} gives no answer: {reason}.",
    "See that it runs and that this machine reaches it: curl -k {url}/version",
)
CERTIFICATE_REFUSED = Kind(
    "GF864",
    Severity.BLOCKER,
    "A certificate is expired or not trusted",
    "{whose} of context {context!r} ({url}) is no good: {reason}.",
    "{advice}",
)
UNAUTHORIZED = Kind(
    "GF865",
    Severity.BLOCKER,
    "The API server does not know this user",
    "The API server {url} refuses the credentials of context {context!r} (401 Unauthorized).",
    "Fetch new credentials for this context, and check them: kubectl auth can-i --list",
)
FORBIDDEN = Kind(
    "GF866",
    Severity.BLOCKER,
    "A permission is missing",
    "The user of context {context!r} may not do what gpufleet needs: {missing}.",
    "Use a context that may, or let an administrator grant these verbs (a ClusterRole with them, "
    "bound to this user); check with: kubectl auth can-i {example}",
)
SERVER_TOO_OLD = Kind(
    "GF867",
    Severity.BLOCKER,
    "The cluster is older than the catalog knows",
    "The cluster runs Kubernetes {version}; the oldest that gpufleet has charts for is {oldest}.",
    "Upgrade the cluster to {oldest} or newer.",
)
ANSWER_UNREADABLE = Kind(
    "GF869",
    Severity.BLOCKER,
    "The API server gave an answer that cannot be read",
    "{request} of context {context!r} was answered with {reason}.",
    "Try again; if it stays, look at the API server's log.",
)
NAMED_TWICE = Kind(
    "GF822",
    Severity.BLOCKER,
    "Two clusters have one name",
    "The inventory has {name} more than once in gpu_cluster: pyinfra takes them for one host, with "
    "the data of the last one.",
    'Name each cluster: ("@cluster/prod", {{"cluster_context": "prod"}}), ("@cluster/lab", …).',
)
UNEXPECTED = Kind(
    "GF821",
    Severity.BLOCKER,
    "Something unexpected stopped the work on a cluster",
    "At {place}: {error}.",
    "Nothing more was done in this cluster; other clusters and hosts went on. An odd answer of its "
    "API is the likely cause: see what that line reads, put it right and run again.",
)
RUN_IN_PROGRESS = Kind(
    "GF899",
    Severity.BLOCKER,
    "Another run is at work on the cluster",
    "{holder} is still at work on this cluster after {seconds} s. Nothing was changed.",
    "Let that run finish, or end it, then run again; cluster_lock_timeout says how long to wait. "
    "It is noted in the cluster: kubectl -n kube-system get lease gpufleet -o yaml",
)
LEASE_LOST = Kind(
    "GF823",
    Severity.BLOCKER,
    "Another run has taken over the cluster",
    "This run did not renew its Lease for half a minute, as after the machine was suspended, and "
    "{holder} holds it now. The rest of this run was not carried out.",
    "Let that run finish, then run again: it converges.",
)
WRONG_CLUSTER = Kind(
    "GF824",
    Severity.BLOCKER,
    "This is another cluster",
    "Context {context!r} leads to {url}, whose namespace kube-system has the uid {found}; "
    "cluster_uid is {wanted}. Nothing was changed.",
    "Choose the context of the cluster that is meant. Where it was rebuilt, set cluster_uid to: "
    "kubectl get namespace kube-system -o jsonpath={{.metadata.uid}}",
)
WRITE_REFUSED = Kind(
    "GF880",
    Severity.BLOCKER,
    "The API refused a change",
    "gpufleet could not {action}: {reason}.",
    "Read the reason; when it is a permission, use a context that has it; then run again.",
)
