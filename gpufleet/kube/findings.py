"""Findings about reaching a Kubernetes cluster and reading it."""

from __future__ import annotations

from gpufleet.core.findings import blocker, warning

KUBECONFIG_INVALID = blocker(
    "GF861",
    "Invalid kubeconfig",
    "Kubeconfig {path} cannot be used: {reason}.",
    "Set cluster_kubeconfig or KUBECONFIG to one with which `kubectl get nodes` works, and "
    "cluster_context to a context of it.",
)
API_UNREACHABLE = blocker(
    "GF863",
    "API server unreachable",
    "The API server of context {context!r} at {url} does not respond: {reason}.",
    "Check that it is running and that this machine reaches it: curl -k {url}/version",
)
CERTIFICATE_REFUSED = blocker(
    "GF864",
    "Certificate expired or not trusted",
    "{whose} of context {context!r} ({url}) was rejected: {reason}.",
    "{advice}",
    advice="Renew the certificate, correct the clock of this machine, or use a kubeconfig with "
    "the cluster's current CA, as the finding says.",
)
UNAUTHORIZED = blocker(
    "GF865",
    "Not authenticated to the API server",
    "API server {url} rejects the credentials of context {context!r} (401 Unauthorized).",
    "Get new credentials for this context, and check them with: kubectl auth can-i --list",
)
FORBIDDEN = blocker(
    "GF866",
    "Missing permission",
    "The user of context {context!r} lacks permissions that gpufleet needs: {missing}.",
    "Use a context that has them, or ask an administrator to grant these verbs (a ClusterRole "
    "bound to this user). Check with: kubectl auth can-i {example}",
)
SERVER_TOO_OLD = blocker(
    "GF867",
    "Kubernetes version too old",
    "The cluster runs Kubernetes {version}; the oldest version with charts in the catalog is "
    "{oldest}.",
    "Upgrade the cluster to {oldest} or newer.",
)
ANSWER_UNREADABLE = blocker(
    "GF869",
    "Unreadable response from the API server",
    "{request} of context {context!r} was answered with {reason}.",
    "Try again. If the problem persists, check the API server's log.",
)
NAMED_TWICE = blocker(
    "GF822",
    "Duplicate cluster name",
    "The inventory lists {name} more than once in gpu_cluster: pyinfra treats them as one host "
    "with the data of the last one.",
    'Give each cluster a name: ("@cluster/prod", {{"cluster_context": "prod"}}), ("@cluster/lab", '
    "…).",
)
RUN_IN_PROGRESS = blocker(
    "GF899",
    "Cluster is locked by another run",
    "{holder} is still changing this cluster after {seconds} s. Nothing was changed.",
    "Let that run finish, or stop it, then run again; cluster_lock_timeout sets how long to wait. "
    "The lock: kubectl -n kube-system get lease gpufleet -o yaml",
)
LEASE_LOST = blocker(
    "GF823",
    "Cluster lock taken over by another run",
    "This run did not renew its Lease for a minute, for example because the machine was "
    "suspended, and {holder} now holds it. The rest of this run was skipped.",
    "Let that run finish, then run again: it converges.",
)
WRONG_CLUSTER = blocker(
    "GF824",
    "Context points to another cluster",
    "Context {context!r} points to {url}, whose namespace kube-system has the UID {found}; "
    "cluster_uid is {wanted}. Nothing was changed.",
    "Select the context of the intended cluster. If it was rebuilt, set cluster_uid to: kubectl "
    "get namespace kube-system -o jsonpath={{.metadata.uid}}",
)
OBJECT_OF_OTHERS = blocker(
    "GF900",
    "Name taken by an object of others",
    "{kind} {namespace}/{name} exists, but gpufleet did not create it. gpufleet needs an object of "
    "that name, and did not change this one.",
    "Find out who uses it: kubectl -n {namespace} get {kind} {name} -o yaml. Rename or delete it, "
    "then run again.",
)
OBJECT_KEPT = warning(
    "GF901",
    "Object applied by Flux or Argo CD differs",
    "{keeper} applies {name} ({kind} of namespace {namespace}), which differs from the "
    "inventory; gpufleet does not change it.",
    "Render again (`gpufleet render`), commit the files, and wait until they are applied.",
)
WRITE_REFUSED = blocker(
    "GF880",
    "API server rejected a change",
    "Cannot {action}: {reason}.",
    "Fix the cause; if a permission is missing, use a context that has it. Then run again.",
    description="The API server rejected a write of gpufleet. The message has the action, such as "
    "labelling a node or creating a Secret, and the server's reason.",
)
