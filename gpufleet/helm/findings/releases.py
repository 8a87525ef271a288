"""Findings about Helm releases, their CRDs, their pods and nodes."""

from __future__ import annotations

from gpufleet.core.findings import blocker, info, warning

NAME_TAKEN = blocker(
    "GF830",
    "Release name in use by another chart",
    "Release {release} is of chart {chart}, not of {wanted}. It was not changed.",
    "Set another namespace for {wanted} in the inventory, or uninstall that release if it is not "
    "needed.",
)
NOT_OURS = blocker(
    "GF831",
    "Release not managed by gpufleet",
    "Release {release} ({chart}) was not created by gpufleet. It was not changed.{lost}",
    "To use it as it is, set {left_by}. To let gpufleet manage it, copy the values to keep into "
    "the inventory, remove it from Flux or any other tool that would change it back, and set "
    "cluster_adopt_releases = True.",
)
RELEASE_ELSEWHERE = blocker(
    "GF813",
    "Release is in another namespace",
    "gpufleet installed release {release}; the inventory now wants it in namespace {wanted}. helm "
    "cannot move a release, and two would do the same work.",
    "Set {key} = {namespace!r}, or remove the release first: `helm uninstall {name} -n "
    "{namespace}`. Volumes stay in namespace {namespace}.",
)
RELEASE_KEPT = info(
    "GF825",
    "Release applied by Flux or Argo CD",
    "{keeper} applies release {release}; gpufleet does not change it.",
    "No action required. To change the release, change the files that {keeper} reads: `gpufleet "
    "render INVENTORY --output DIR`.",
)
RELEASE_BEHIND = warning(
    "GF826",
    "Release of Flux or Argo CD differs",
    "{keeper} applies release {release}, which differs from the inventory ({differences}); "
    "gpufleet does not change it.",
    "If its files are those of `gpufleet render`: render again, commit them, and wait until they "
    "are applied. Otherwise set {left_by}, which leaves the release to its owner.",
)
KEPT_RELEASE_FAILED = warning(
    "GF827",
    "Flux could not apply a release",
    "{keeper} has not applied release {release}: {problem}; gpufleet does not change it.",
    "Read the reason: `kubectl -n {namespace} describe {kind} {name}`. Correct the files that "
    "{keeper} reads.",
)
VALUES_EDITED = warning(
    "GF868",
    "Release values changed outside gpufleet",
    "The latest revision of release {release} was not created by gpufleet, and this run replaces "
    "these of its values: {keys}.",
    "Copy the ones to keep into the values in the inventory. The previous values: helm get values "
    "{name} --namespace {namespace} --revision {revision}.",
)
RELEASE_BUSY = blocker(
    "GF832",
    "Release is locked by another operation",
    "Release {release} has been {status} for {age}: another helm process may be changing it.",
    "Wait until it is done and run again. A release in this state for {stale} is recovered.",
)
NAMESPACE_ENDS = blocker(
    "GF833",
    "Namespace is terminating",
    "Namespace {namespace} is being deleted; nothing can be installed in it.",
    "Wait until it is deleted (kubectl get namespace {namespace}), then run again.",
)
NODE_PORT_TAKEN = blocker(
    "GF834",
    "Node port in use",
    "Release {release} requests node port {port}, which Service {holder} uses.",
    "Choose another port, or change that Service.",
)
POD_SECURITY = blocker(
    "GF835",
    "Pod security level too strict",
    "Namespace {namespace} enforces pod security level {level}, but the pods of {release} require "
    "privileged.",
    "kubectl label namespace {namespace} --overwrite "
    "pod-security.kubernetes.io/enforce=privileged, or choose another namespace.",
)
QUOTA = blocker(
    "GF819",
    "Quota rejects pods",
    "In namespace {namespace}, a quota rejects the pods of {release}: {error}",
    "If it is about scopes, the cluster allows this priority class only where a quota permits it: "
    "kubectl create quota gpufleet --namespace {namespace} --hard=pods=1000 "
    "--scopes=PriorityClass, or set priorityClassName in the values of the release. If a quota is "
    "exceeded, raise it: kubectl get resourcequota --namespace {namespace}",
)
VALUE_UNKNOWN = warning(
    "GF836",
    "Unknown chart value",
    "{key} is not a value of chart {chart} and may have no effect.",
    "{suggestion}Compare with: helm show values",
)
VALUE_IN_THE_WAY = warning(
    "GF808",
    "Chart value conflicts with another part",
    "{at} in {key} {found}, which {by} cannot work with: {effect}.",
    "Remove {at} from {key}{instead}.",
    description="A value that the user sets for a chart takes precedence, but another part of the "
    "plan relies on it: a setting, alerts or dashboards. It is a blocker if a setting asks for "
    "that part.",
)
CRD_KEPT = warning(
    "GF837",
    "CRDs were not upgraded",
    "{count:CRD stays|CRDs stay} as in the cluster, because {reason}: {crds}. Chart {chart} ships "
    "{ours}.",
    "No action required while everything works; the API server drops fields that a CRD lacks.",
)
OFFERS_NOTHING = warning(
    "GF888",
    "Node advertises no GPUs",
    "{node} advertises no GPUs, although the pods of {release} are ready there.",
    "Read the plugin's log on that node, and run `gpufleet verify` on it: the driver, NVML or the "
    "container runtime does not expose a GPU.",
)
NO_PODS = warning(
    "GF838",
    "DaemonSet has no pods",
    "DaemonSet {daemonset} has no pods: {reason}.",
    "Label the nodes as it requires (kubectl label node NODE KEY=VALUE; node-feature-discovery "
    "does so automatically), or correct nodeSelector, affinity or tolerations in the values of its "
    "release. A DaemonSet that no GPU node fits stops its release.",
)
HELM_FAILED = blocker(
    "GF840",
    "helm failed",
    "{what} of release {release} failed: {error}",
    "{state}",
    advice="Fix the cause and run again. The finding says in which state the release is.",
)
CHART_UNREACHABLE = blocker(
    "GF841",
    "Chart cannot be downloaded",
    "Cannot download chart {chart} {version} from {source}: {error}",
    "Check that this machine reaches it, set cluster_chart_repository to a mirror, or put the "
    "archive into a folder and set cluster_chart_dir to it.",
)
CHART_NOT_IN_FOLDER = blocker(
    "GF815",
    "Chart archive is not in the folder",
    "Chart {chart} {version} is not in the folder of cluster_chart_dir: there is no {source}.",
    "Put it there: `helm pull {chart} --version {version} --repo URL` on a machine that reaches "
    "the repository (`gpufleet catalog charts --kubernetes VERSION --json` has its URL). Or take "
    "the archives of all charts from `gpufleet bundle create`.",
)
CHART_BROKEN = blocker(
    "GF842",
    "Invalid chart archive",
    "{path} is not a valid archive of chart {chart} {version}: {reason}.",
    "Download it again: helm pull {chart} --version {version} --repo URL",
)
KIND_MISSING = blocker(
    "GF843",
    "Resource kind not served by the cluster",
    "Release {release} has objects of kind {kind} ({version}), which this cluster does not serve.",
    "Install what defines it first (a ServiceMonitor needs the CRDs of the Prometheus Operator), "
    "or disable those objects.",
)
FIELD_REFUSED = blocker(
    "GF844",
    "Chart does not support this Kubernetes version",
    "{what} of release {release} was rejected: {error}",
    "This chart version does not support Kubernetes {server}: `gpufleet catalog charts "
    "--kubernetes {server}` lists one that does.",
)
FIELD_CONFLICT = blocker(
    "GF845",
    "Field conflict",
    "{what} of release {release} stopped: {manager} owns {fields} of {object}.",
    "Revert that change or move it to the values; to override it, set cluster_force_conflicts = "
    "True.",
)
NOT_READY = blocker(
    "GF847",
    "Release did not become ready",
    "Release {release} is not ready after {seconds} s: {reasons}.",
    "{remedy}",
    advice="Fix the cause and run again. The finding says whether the release was rolled back or "
    "left as it is.",
)
ROLLED_BACK = warning(
    "GF848",
    "Release was rolled back",
    "Release {release} was rolled back to revision {revision} ({chart}), because the new one "
    "failed.",
    "Fix the cause and run again.",
)
FIELD_DROPPED = warning(
    "GF850",
    "API server dropped a field",
    "While applying {release}, the API server dropped the unknown field {field}.",
    "Usually a CRD is older than the chart, or the chart is newer than the cluster.",
)
VALUES_REFUSED = blocker(
    "GF851",
    "Chart rejected the values",
    "Chart {chart} {version} rejects its values: {error}",
    "Correct the values listed; `helm show values` prints what the chart expects.",
)
IMMUTABLE_FIELD = blocker(
    "GF853",
    "Immutable field",
    "{what} of release {release} would change an immutable field: {object}: {error}",
    "Delete that object without its pods, then run again: kubectl delete {object} --cascade=orphan",
)
HELM_MISSING = blocker(
    "GF854",
    "No helm that can be used",
    "helm cannot be used on this machine: {reason}.",
    "Install helm {oldest} or newer (https://helm.sh), set cluster_helm to its path, or set "
    "cluster_helm_url to a folder that this machine reaches.",
)
NEWER_INSTALLED = warning(
    "GF859",
    "Newer chart installed",
    "Release {release} is of chart {installed}, newer than the selected {version}. It was not "
    "changed.",
    "Pin version {version} to downgrade, or {newer} to stay on it.",
)
RELEASE_UNREADABLE = blocker(
    "GF820",
    "Helm's release record is unreadable",
    "Helm's stored state of release {release} is unusable: {reason}.",
    "Find out what wrote that Secret (kubectl get secret -o yaml). Restore it from a backup, or "
    "delete it: the previous revision then applies.",
)
RECREATED = warning(
    "GF881",
    "Upgrade recreates a workload",
    "The upgrade of release {release} recreates {workload} ({pods:pod|pods}): its label "
    "selector is immutable.",
    "It is unavailable until the new pods are ready; upgrade when that is acceptable.",
)
OPERATOR_NOT_READY = blocker(
    "GF882",
    "GPU Operator is not ready",
    "Release {release} is installed, but not all operands of its operator were ready after "
    "{seconds} s: {reasons}",
    "The operator continues, and nothing is rolled back: run again to wait longer, with a larger "
    "cluster_timeout where drivers are compiled. If the problem persists: kubectl -n {namespace} "
    "logs deployment/gpu-operator",
)
OPERATOR_FOUND_NO_GPU = warning(
    "GF883",
    "GPU Operator found no GPU node",
    "ClusterPolicy {policy} is ready because no node needs it: {message}",
    "Nodes with a GPU have the label feature.node.kubernetes.io/pci-10de.present=true: check that "
    "node-feature-discovery runs on them. No action required if they have yet to join.",
)


NODES_DOWN = warning(
    "GF817",
    "Nodes are not Ready",
    "Nothing is expected of these nodes, because they are not Ready: {nodes}.",
    "They get what they lack when they are Ready again; kubectl describe node NODE has the cause. "
    "A node that is gone for good: `kubectl delete node NODE`. If the update of a DaemonSet does "
    "not proceed, Kubernetes may be waiting for these nodes (maxUnavailable, by default 1).",
)
NODES_LEFT_OUT = warning(
    "GF809",
    "GPU nodes without a pod",
    "DaemonSet {daemonset} has no pod on these GPU nodes: {nodes}.",
    "No action required if that is intended. Otherwise label the nodes (kubectl label node NODE "
    "KEY=VALUE), or change nodeSelector, affinity or tolerations in the values of its release.",
)
OPERATOR_SILENT = warning(
    "GF818",
    "Operator does not report",
    "{object} of release {release} has no status and no workload: no operator has acted on it.",
    "Read the log of the operator (kubectl -n {namespace} logs deployment/kube-prometheus-stack-"
    "operator), and check the result with `gpufleet verify`.",
)
