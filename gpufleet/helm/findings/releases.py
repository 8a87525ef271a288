"""Findings about Helm releases, their CRDs and their pods."""

from __future__ import annotations

from gpufleet.core.findings import Kind, Severity

NAME_TAKEN = Kind(
    "GF830",
    Severity.BLOCKER,
    "A release of another chart has the name",
    "Release {release} is of chart {chart}, not of {wanted}. It is left as it is.",
    "Choose another namespace or name for ours, or take that release away if it is not needed.",
)
NOT_OURS = Kind(
    "GF831",
    Severity.BLOCKER,
    "A release was not made by gpufleet",
    "Release {release} ({chart}) was made by something else, and these values of it would get "
    "lost or change: {keys}.",
    "Copy what should stay into the values for {wanted}, and allow gpufleet to take the release "
    "over (cluster_adopt_releases = True).",
)
VALUES_EDITED = Kind(
    "GF868",
    Severity.WARNING,
    "Values of a release were changed outside gpufleet",
    "The newest revision of release {release} was not made by gpufleet, and this run replaces "
    "these values of it: {keys}.",
    "Put what should stay into the values in the inventory. What was there: helm get values "
    "{name} --namespace {namespace} --revision {revision}.",
)
BUSY = Kind(
    "GF832",
    Severity.BLOCKER,
    "Something else is at work on a release",
    "Release {release} is {status} since {age}: another helm may be at work on it.",
    "Wait until it is done and run again. A release that stays so for {stale} is repaired then.",
)
NAMESPACE_ENDS = Kind(
    "GF833",
    Severity.BLOCKER,
    "A namespace is being deleted",
    "Namespace {namespace} is being deleted: nothing can be installed there.",
    "Wait until it is gone (kubectl get namespace {namespace}), then run again.",
)
NODE_PORT_TAKEN = Kind(
    "GF834",
    Severity.BLOCKER,
    "A node port is taken",
    "Release {release} wants port {port} on the nodes, and Service {holder} has it.",
    "Choose another port, or take it from that Service.",
)
POD_SECURITY = Kind(
    "GF835",
    Severity.BLOCKER,
    "The namespace does not allow the pods",
    "Namespace {namespace} enforces the pod security level {level}, and the pods of {release} need "
    "privileged.",
    "kubectl label namespace {namespace} --overwrite pod-security.kubernetes.io/enforce=privileged "
    "or choose another namespace.",
)
VALUE_UNKNOWN = Kind(
    "GF836",
    Severity.WARNING,
    "The chart does not know a value",
    "The value {key} is not among the values of chart {chart}: it may have no effect.",
    "{suggestion} Compare with: helm show values",
)
CRD_KEPT = Kind(
    "GF837",
    Severity.WARNING,
    "A CRD is left as it is",
    "CRD {crd} is left as it is: {reason}. Chart {chart} brings {ours}.",
    "Nothing to do while everything works; fields that the CRD lacks are dropped by the server.",
)
OFFERS_NOTHING = Kind(
    "GF888",
    Severity.WARNING,
    "Node offers no GPUs",
    "{node} offers no GPUs to pods, although the pods of {release} are ready there.",
    "Read the plugin's log on that node, and run `gpufleet verify` on the node itself: the driver, "
    "NVML or the container runtime does not show it a GPU.",
)
NO_PODS = Kind(
    "GF838",
    Severity.WARNING,
    "A DaemonSet has no pods",
    "DaemonSet {daemonset} wants no pods: {reason}.",
    "Give the nodes what it looks for (kubectl label node NODE KEY=VALUE; "
    "node-feature-discovery does it by itself), or change its node selector or tolerations.",
)
HELM_SKEW = Kind(
    "GF839",
    Severity.INFO,
    "helm is outside its support range",
    "helm {helm} is supported on Kubernetes {low} to {high}; the cluster runs {server}. It is "
    "called in a way that works there.",
    "Nothing to do.",
)
HELM_FAILED = Kind(
    "GF840",
    Severity.BLOCKER,
    "helm failed",
    "{what} of release {release} failed: {error}",
    "See what helm said; {state}",
)
CHART_UNREACHABLE = Kind(
    "GF841",
    Severity.BLOCKER,
    "The chart cannot be fetched",
    "Chart {chart} {version} cannot be fetched from {source}: {error}",
    "See that this machine reaches it, name a mirror with cluster_chart_repository, or put the "
    "archive into a folder and name it with cluster_chart_dir.",
)
CHART_BROKEN = Kind(
    "GF842",
    Severity.BLOCKER,
    "The chart archive is broken",
    "{path} is no usable archive of chart {chart} {version}: {reason}.",
    "Fetch it again: helm pull {chart} --version {version}",
)
KIND_MISSING = Kind(
    "GF843",
    Severity.BLOCKER,
    "The cluster does not know a kind of object",
    "Release {release} has objects of kind {kind} ({version}), which this cluster does not serve.",
    "Install what brings it first (a ServiceMonitor needs the CRDs of the Prometheus Operator), or "
    "switch those objects off.",
)
FIELD_REFUSED = Kind(
    "GF844",
    Severity.BLOCKER,
    "The API server refuses the chart's objects",
    "{what} of release {release} was refused: {error}",
    "This version of the chart does not fit Kubernetes {server}: `gpufleet catalog charts "
    "--kubernetes {server}` shows one that does.",
)
FIELD_CONFLICT = Kind(
    "GF845",
    Severity.BLOCKER,
    "Something else changed a field that the chart sets",
    "{what} of release {release} stopped: {manager} owns {fields} of {object}.",
    "Take the change back or put it into the values; to overrule it, set "
    "cluster_force_conflicts = True.",
)
KUBERNETES_REFUSED = Kind(
    "GF846",
    Severity.BLOCKER,
    "The chart does not want this Kubernetes",
    "Chart {chart} {version} refuses this cluster: {error}",
    "`gpufleet catalog charts --kubernetes {server}` shows the version that fits.",
)
NOT_READY = Kind(
    "GF847",
    Severity.BLOCKER,
    "A release did not become ready",
    "Release {release} is not ready after {seconds} s: {reasons}.",
    "{state}",
)
ROLLED_BACK = Kind(
    "GF848",
    Severity.WARNING,
    "A release was rolled back",
    "Release {release} is back at revision {revision} ({chart}), because what was new failed.",
    "Put the cause right and run again.",
)
ROLLBACK_FAILED = Kind(
    "GF849",
    Severity.BLOCKER,
    "A release could not be rolled back",
    "Release {release} could not be taken back to revision {revision}: {error}",
    "Run again: it is repaired first. By hand: helm rollback {name} {revision} -n {namespace}",
)
FIELD_DROPPED = Kind(
    "GF850",
    Severity.WARNING,
    "The API server dropped a field",
    "While {release} was applied the API server did not know {field} and dropped it.",
    "Most often a CRD is older than the chart, or the chart newer than the cluster.",
)
VALUES_REFUSED = Kind(
    "GF851",
    Severity.BLOCKER,
    "The chart refuses the values",
    "Chart {chart} {version} refuses its values: {error}",
    "Correct the values named; `helm show values` prints what the chart expects.",
)
HOOK_FAILED = Kind(
    "GF852",
    Severity.BLOCKER,
    "A hook Job of the chart failed",
    "{what} of release {release} stopped at a hook: {error}",
    "The Job's pod says why; {state}",
)
IMMUTABLE_FIELD = Kind(
    "GF853",
    Severity.BLOCKER,
    "A field cannot be changed in place",
    "{what} of release {release} would change a field that cannot change: {object}: {error}",
    "Delete that object without its pods, then run again: kubectl delete {object} --cascade=orphan",
)
HELM_MISSING = Kind(
    "GF854",
    Severity.BLOCKER,
    "There is no helm",
    "helm is not on this machine ({looked}), and it could not be installed: {reason}.",
    "Install helm {oldest} or newer, or set cluster_helm to its path, or cluster_helm_url to a "
    "folder that this machine reaches.",
)
HELM_CHECKSUM = Kind(
    "GF855",
    Severity.BLOCKER,
    "The download of helm is not what it should be",
    "{url} has the sha256 {found}, the catalog says {wanted}. It was not used.",
    "Put the right archive there where the site is yours; else find out who changes downloads on "
    "the way. Or set cluster_helm.",
)
HELM_UNUSABLE = Kind(
    "GF856",
    Severity.BLOCKER,
    "This helm cannot be used",
    "{path} cannot be used: {reason}.",
    "Install helm {oldest} or newer, or set cluster_helm to one.",
)
CRD_REFUSED = Kind(
    "GF857",
    Severity.BLOCKER,
    "A CRD could not be brought up to date",
    "CRD {crd} of chart {chart} could not be written: {error}",
    "The release itself was not touched. Run again when the cause is gone.",
)
HELM_HANGS = Kind(
    "GF858",
    Severity.BLOCKER,
    "helm did not come back",
    "{what} of release {release} was ended after {seconds} s: {reasons}.",
    "{state}",
)
NEWER_INSTALLED = Kind(
    "GF859",
    Severity.WARNING,
    "A newer chart is installed",
    "Release {release} is of chart {installed}, newer than {version}, which would be chosen. "
    "Nothing of it is changed.",
    "Pin the version {version} to go back, or {newer} to go on with it.",
)
RELEASE_UNREADABLE = Kind(
    "GF820",
    Severity.BLOCKER,
    "Helm's record of a release cannot be read",
    "What Helm notes of release {release} cannot be relied on: {reason}.",
    "Find out who wrote that Secret (kubectl get secret -o yaml). Restore it from a backup, or "
    "delete it: the revision before it counts then.",
)
RECREATED = Kind(
    "GF881",
    Severity.WARNING,
    "A workload is made anew",
    "The new chart of release {release} selects other pods in {workload}, which Kubernetes does "
    "not change in place: it is removed with its {pods} pods and made again by the upgrade.",
    "What it does pauses until the new pods are ready; run the upgrade when that is acceptable.",
)
