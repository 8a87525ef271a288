"""Types of the facts of a Kubernetes cluster, gathered in one pass over its API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gpufleet.kube.keepers import Keeper
from gpufleet.kube.node_answers import ClusterNode as ClusterNode
from gpufleet.kube.node_answers import Placement as Placement
from gpufleet.kube.node_answers import Taint as Taint
from gpufleet.kube.system_pods import SystemPod

WorkloadKind = Literal["DaemonSet", "Deployment", "StatefulSet", "Pod"]


@dataclass(frozen=True, slots=True, order=True)
class ServerVersion:
    """Version of the API server. Compares by major and minor."""

    major: int
    minor: int
    full: str = field(default="", compare=False)  # v1.36.3, v1.29.4-eks-036c24b

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True, order=True)
class ObjectRef:
    """The name of an object. `namespace` is "" for cluster-scoped objects."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}".replace(" /", " ")


@dataclass(frozen=True, slots=True, order=True)
class ReleaseRef:
    """The name of a Helm release, as in the annotations of its objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Crd:
    """A CustomResourceDefinition."""

    name: str  # servicemonitors.monitoring.coreos.com
    kind: str
    versions: tuple[str, ...]  # served now; () until it is established
    annotations: Mapping[str, str]
    release: ReleaseRef | None = None  # defined by its templates; None: by crds/

    @property
    def group(self) -> str:
        return self.name.split(".", 1)[1]

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef("CustomResourceDefinition", "", self.name)


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision of a release, from the labels of its Secret."""

    number: int
    status: str  # deployed, superseded, failed, pending-install, pending-upgrade, …


@dataclass(frozen=True, slots=True)
class HelmRelease:
    """The newest revision of a Helm release, decoded from its Secret."""

    name: str
    namespace: str
    revision: int
    status: str
    chart: str
    chart_version: str
    app_version: str
    values: Mapping[str, Any] = field(repr=False)  # supplied by its user: may contain secrets
    apply_method: str = ""  # "ssa", "csa", or "" if Helm 3 created it
    labels: Mapping[str, str] = field(default_factory=dict)  # of the Secret, without Helm's own
    created: int = 0  # of the Secret, by the server's clock: seconds since 1970, or 0
    history: tuple[Revision, ...] = ()  # every stored revision, oldest first
    workloads: tuple[ObjectRef, ...] = ()  # DaemonSets, Deployments, StatefulSets of its manifest
    operated: tuple[ObjectRef, ...] = ()  # of its manifest, for an operator
    claims: tuple[ObjectRef, ...] = ()  # PersistentVolumeClaims that Helm would delete with it
    keeper: Keeper | None = None  # Flux or Argo CD, which would undo a change of the release
    problem: str = ""  # why its HelmRelease is not applied, as Flux reports it

    @property
    def ref(self) -> ReleaseRef:
        return ReleaseRef(self.namespace, self.name)

    @property
    def pending(self) -> bool:
        """True if an operation of Helm is running or was interrupted. After an interrupted removal,
        `helm upgrade` finds "no deployed releases", and `helm rollback` works.

        Source: https://github.com/fluxcd/flux2/issues/4614 (read 2026-11-30)
        """
        return self.status.startswith("pending-") or self.status == "uninstalling"

    @property
    def last_good(self) -> int | None:
        """The newest revision that was ever deployed successfully, or None."""
        good = [r.number for r in self.history if r.status in ("deployed", "superseded")]
        return max(good, default=None)

    def among(self, workloads: Iterable[Workload]) -> tuple[Workload, ...]:
        """The workloads of this release: those in its manifest with its annotations, and those that
        an operator created for objects in its manifest. Annotations alone prove nothing, because
        every user may write them."""
        ours, makers = set(self.workloads), set(self.operated)
        return tuple(
            work
            for work in workloads
            if (work.release == self.ref and work.ref in ours) or work.maker in makers
        )

    def with_history(self, history: tuple[Revision, ...]) -> HelmRelease:
        return replace(self, history=history)


@dataclass(frozen=True, slots=True)
class Workload:
    """A DaemonSet, Deployment or StatefulSet, or a pod without such a controller or a Job."""

    kind: WorkloadKind
    namespace: str
    name: str
    images: tuple[str, ...]
    host_ports: tuple[int, ...]
    host_network: bool
    wanted: int  # desired pods
    ready: int
    updated: int  # pods of the newest template
    old: int  # pods of a Deployment's older templates, which also count as ready
    settled: bool  # its controller has observed the newest spec
    selector: Mapping[str, str]  # matchLabels of its pods
    placement: Placement
    release: ReleaseRef | None = None
    owner: ObjectRef | None = None  # its controller: a custom resource, if an operator created it
    labels: Mapping[str, str] = field(default_factory=dict)
    host_paths: tuple[str, ...] = ()  # paths of the node that its pods mount
    ports: tuple[int, ...] = ()  # of its containers, on the node or not
    keeper: Keeper | None = None

    @property
    def uses_node(self) -> bool:
        """True if its pods use paths, ports or the network of their node, as all pods that
        advertise or monitor GPUs do. Pod security `baseline` forbids it."""
        return bool(self.host_paths or self.host_ports or self.host_network)

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.kind, self.namespace, self.name)

    @property
    def image_names(self) -> tuple[str, ...]:
        """The names of its images without registry, folder and tag."""
        return tuple(name.split("@")[0].split("/")[-1].split(":")[0] for name in self.images)

    @property
    def image_folders(self) -> tuple[str, ...]:
        """The folder of each image in its registry, or ""."""
        return tuple((["", *name.split("@")[0].split("/")])[-2] for name in self.images)

    @property
    def maker(self) -> ObjectRef | None:
        """The object in its namespace that controls it."""
        return self.owner and replace(self.owner, namespace=self.namespace)


@dataclass(frozen=True, slots=True)
class PrometheusInstance:
    """A Prometheus resource of the Prometheus Operator."""

    namespace: str
    name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """The resource that a GPU Operator reconciles.

    `reason` and `message`: from the status condition Ready or Error, or "", as with operators
    before v23.9.0.
    """

    name: str
    state: str  # ready, notReady, ignored, or "" until the operator sets it
    spec: Mapping[str, Any]
    release: ReleaseRef | None = None
    reason: str = ""  # Reconciled, NoGPUNodes, OperandNotReady, …
    message: str = ""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace."""

    name: str
    terminating: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodePort:
    """A port that a Service uses on every node."""

    namespace: str
    service: str
    port: int  # on the nodes
    release: ReleaseRef | None = None


@dataclass(frozen=True, slots=True)
class ApiService:
    """An API that a Service of the cluster provides through the API server."""

    name: str  # v1beta1.custom.metrics.k8s.io
    service: ObjectRef
    release: ReleaseRef | None = None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The state of one cluster at one moment."""

    context: str
    server: ServerVersion
    apis: frozenset[str] = frozenset()  # group/version of all APIs except the core API
    nodes: tuple[ClusterNode, ...] = ()
    gpu_pods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by node: NAMESPACE/NAME
    crds: Mapping[str, Crd] = field(default_factory=dict)  # by name
    releases: tuple[HelmRelease, ...] = ()  # only the requested ones
    own_releases: tuple[ReleaseRef, ...] = ()  # all with gpufleet's label, if it may list Secrets
    unreadable: Mapping[ReleaseRef, str] = field(default_factory=dict)  # release -> reason
    workloads: tuple[Workload, ...] = ()
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)  # by name
    node_ports: tuple[NodePort, ...] = ()
    prometheuses: tuple[PrometheusInstance, ...] = ()
    cluster_policies: tuple[ClusterPolicy, ...] = ()
    operated: Mapping[ObjectRef, str] = field(default_factory=dict)  # why it does not work, or ""
    api_services: Mapping[str, ApiService] = field(default_factory=dict)  # by name
    system_pods: tuple[SystemPod, ...] = ()
    runtime_classes: Mapping[str, str] = field(default_factory=dict)  # name -> handler

    def release(self, namespace: str, name: str) -> HelmRelease | None:
        wanted = ReleaseRef(namespace, name)
        return next((release for release in self.releases if release.ref == wanted), None)

    def serves(self, crd: str) -> bool:
        """True if the API serves a custom resource."""
        found = self.crds.get(crd)
        return bool(found and found.versions)

    def serves_api(self, api_version: str) -> bool:
        """True if the API serves this `apiVersion`."""
        return api_version == "v1" or api_version in self.apis

    @property
    def running_prometheuses(self) -> list[PrometheusInstance]:
        """The Prometheuses with pods: those without a reported problem first, then by name."""

        def order(found: PrometheusInstance) -> tuple[bool, str, str]:
            state = self.operated.get(ObjectRef("Prometheus", found.namespace, found.name))
            return bool(state), found.namespace, found.name

        running = (one for one in self.prometheuses if one.spec.get("replicas") != 0)
        return sorted(running, key=order)

    @property
    def prometheus(self) -> PrometheusInstance | None:
        """The cluster's Prometheus. If it has several, the first working one."""
        return next(iter(self.running_prometheuses), None)

    def workloads_of(self, release: ReleaseRef) -> tuple[Workload, ...]:
        """The existing workloads of a release's manifest that Helm created."""
        found = self.release(release.namespace, release.name)
        return found.among(self.workloads) if found else ()
