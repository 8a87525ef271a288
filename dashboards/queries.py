"""PromQL that the dashboards share, for the labels of all exporters and scrape configurations.

Two labels differ between fleets, and within a fleet during an upgrade:

- the node: `Hostname` up to dcgm-exporter 4.8.2, `hostname` from 4.8.3 on, and `node` if the scrape
configuration sets it. The expressions here return `node`.
- the pod that holds a GPU: `exported_namespace` and `exported_pod` with honorLabels: false, else
`namespace` and `pod`. With honorLabels: true, a GPU without a workload has the exporter's pod in
these labels.

Sources: NVIDIA/dcgm-exporter (PR #655), prometheus/prometheus (honor_labels).
"""

from __future__ import annotations

from dataclasses import dataclass

from dashboards import fields

RESOURCE = "nvidia_com_gpu"  # as kube-state-metrics spells nvidia.com/gpu
MIG_RESOURCES = "nvidia_com_mig_.+"  # nvidia.com/mig-1g.10gb, with the MIG strategy mixed
A_MIG_INSTANCE = 'GPU_I_ID!=""'  # matcher: a whole GPU has no such label
EXPORTER_PODS = ".*dcgm-exporter.*"  # of NVIDIA's chart and of the GPU Operator
KWH = 3.6e9  # mJ in one kWh
HARDLY = 0.05  # share of the time: below this a GPU counts as idle
PER_NODE = "cluster, node"
PER_GPU = "cluster, node, gpu"
PER_POD = "cluster, namespace, pod"
PER_POD_GPU = "cluster, namespace, pod, node, gpu"
PER_INSTANCE = "cluster, node, gpu, GPU_I_ID, GPU_I_PROFILE"
PER_RESOURCE = "cluster, node, resource"
IDENTITY = "cluster, node, gpu, UUID, modelName"


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables by which the queries of a dashboard select; the cluster always."""

    node: bool = False
    gpu: bool = False
    namespace: bool = False

    def of_gpu(self) -> list[str]:
        """Matchers of an exporter's series. A label that is not there matches: `$node|`."""
        found = ['cluster=~"$cluster"']
        if self.node:
            found += [f'{label}=~"$node|"' for label in ("Hostname", "hostname", "node")]
        if self.gpu:
            found.append('gpu=~"$gpu"')
        return found

    def of_node(self) -> list[str]:
        """Matchers of kube-state-metrics' series about nodes."""
        return ['cluster=~"$cluster"', *(['node=~"$node"'] if self.node else [])]

    def of_pod(self) -> list[str]:
        """Matchers of kube-state-metrics' series about pods that have a node."""
        namespace = ['namespace=~"$namespace"'] if self.namespace else []
        return [*self.of_node(), *namespace]


def gpu(field: str, scope: Scope, by: str = PER_GPU, how: str = "max") -> str:
    """A field per GPU. Under MIG the instances of a GPU repeat its values: `how` joins them."""
    return _once(how, by, _with_node(_selected(field, scope.of_gpu())))


def of_instances(field: str, scope: Scope) -> str:
    """A field per MIG instance. Exporters have series of instances in place of their GPU's; only
    memory, XIDs and the activity of engines, SMs, tensor cores and memory are their own."""
    selected = _selected(field, [A_MIG_INSTANCE, *scope.of_gpu()])
    return _once("max", PER_INSTANCE, _with_node(selected))


def counted(field: str, scope: Scope, by: str = PER_GPU) -> str:
    """How much a counter grows per second."""
    rate = f"rate({_selected(field, scope.of_gpu())}[$__rate_interval])"
    return f"max by ({by}) ({_with_node(rate)})"


def utilisation(scope: Scope, by: str = PER_GPU) -> str:
    """Share of time (0 to 1) in which a GPU worked, by the best counter that each has."""
    profiled = gpu(fields.ENGINE_ACTIVE, scope, by, "avg")
    return f"{profiled} or {gpu(fields.UTILISATION, scope, by, 'avg')} / 100"


def memory_share(scope: Scope, by: str) -> str:
    """Share (0 to 1) of the memory that is in use."""
    used = gpu(fields.MEMORY_USED, scope, by, "sum")
    return f"{used} / ({used} + {gpu(fields.MEMORY_FREE, scope, by, 'sum')})"


def workload(
    field: str, scope: Scope, by: str, how: str = "max", over: str = "{}", only: str = ""
) -> str:
    """A field of the GPUs that pods hold, by pod; `over`: a function around it, `rate({}[5m])`;
    `only`: one more matcher."""
    of_gpu = [*([only] if only else []), *scope.of_gpu()]
    namespace = ['exported_namespace=~"$namespace"'] if scope.namespace else []
    kept = _selected(field, ['exported_pod!=""', *namespace, *of_gpu])
    namespace = ['namespace=~"$namespace"'] if scope.namespace else []
    no_exporter = ['exported_pod=""', 'pod!=""', f'pod!~"{EXPORTER_PODS}"']
    honoured = _selected(field, [*no_exporter, *namespace, *of_gpu])
    kept, honoured = over.format(kept), over.format(honoured)
    for label in ("namespace", "pod"):
        kept = f'label_replace({kept}, "{label}", "$1", "exported_{label}", "(.+)")'
    return _once(how, by, _with_node(f"{kept} or {honoured}"))


def workload_utilisation(scope: Scope, over: str = "{}") -> str:
    """Like `utilisation`, for GPUs that pods hold. `over`: see `workload`."""
    profiled = workload(fields.ENGINE_ACTIVE, scope, PER_POD_GPU, "avg", over)
    return f"{profiled} or {workload(fields.UTILISATION, scope, PER_POD_GPU, 'avg', over)} / 100"


def workload_power(scope: Scope) -> str:
    """Watts by pod and GPU, divided between the pods that share a GPU, so that sums are right."""
    each = workload(fields.POWER, scope, PER_POD_GPU)
    return f"{each} / on ({PER_GPU}) group_left () count by ({PER_GPU}) ({each})"


def joined(how: str, by: str, expression: str) -> str:
    """An expression per GPU, joined to fewer series: `joined("avg", PER_NODE, …)`."""
    return f"{how} by ({by}) ({expression})"


def held(scope: Scope, by: str) -> str:
    """GPUs that pods hold: requests of pods that have a node and have not ended."""
    requests = _selected(
        "kube_pod_container_resource_requests",
        [f'resource="{RESOURCE}"', 'node!=""', *scope.of_pod()],
    )
    return f"sum by ({by}) ({requests} {_unless_ended()})"


def held_hours(scope: Scope, by: str) -> str:
    """GPU hours that pods held, over the time that the dashboard shows."""
    share = f"sum_over_time(({held(scope, by)})[$__range:5m])"
    return f"{share} / scalar(count_over_time(vector(1)[$__range:5m])) * $__range_s / 3600"


def energy(scope: Scope) -> str:
    """kWh by GPU, over the time that the dashboard shows."""
    grown = f"increase({_selected(fields.ENERGY, scope.of_gpu())}[$__range])"
    return f"max by ({PER_GPU}) ({_with_node(grown)}) / {KWH:.1e}"


def waiting(scope: Scope, by: str) -> str:
    """GPUs that pods ask for that no node has taken."""
    namespace = ['namespace=~"$namespace"'] if scope.namespace else []
    requests = _selected(
        "kube_pod_container_resource_requests",
        [f'resource="{RESOURCE}"', 'node=""', 'cluster=~"$cluster"', *namespace],
    )
    return f"sum by ({by}) ({requests} {_unless_ended()})"


def nodes(metric: str, scope: Scope, *matchers: str) -> str:
    """A metric of kube-state-metrics about nodes, selected."""
    return _selected(metric, [*matchers, *scope.of_node()])


def installed(scope: Scope, by: str) -> str:
    """GPUs that nodes say they have."""
    return f"sum by ({by}) ({_of_resource('kube_node_status_capacity', scope)})"


def allocatable(scope: Scope, by: str) -> str:
    """GPUs that nodes offer: those of them that are healthy."""
    return f"sum by ({by}) ({_of_resource('kube_node_status_allocatable', scope)})"


def at_work(scope: Scope) -> str:
    """How many GPUs are not idle."""
    return f"count(({utilisation(scope)}) > {HARDLY})"


def usable(scope: Scope, by: str) -> str:
    """GPUs of nodes that are ready and take pods."""
    offered = _of_resource("kube_node_status_allocatable", scope)
    cordoned = nodes("kube_node_spec_unschedulable", scope)
    return (
        f"sum by ({by}) ({offered} unless on ({PER_NODE}) ({_ready(scope)} == 0) "
        f"unless on ({PER_NODE}) ({cordoned} == 1))"
    )


def free(scope: Scope) -> str:
    """GPUs by node that a pod could have now."""
    there = usable(scope, PER_NODE)
    return f"{there} - ({held(scope, PER_NODE)} or 0 * {there})"


def free_instances(scope: Scope) -> str:
    """MIG devices that nodes offer and no pod holds, by node and resource."""
    matcher = f'resource=~"{MIG_RESOURCES}"'
    offered = nodes("kube_node_status_allocatable", scope, matcher)
    requests = _selected(
        "kube_pod_container_resource_requests", [matcher, 'node!=""', *scope.of_pod()]
    )
    there = f"sum by ({PER_RESOURCE}) ({offered})"
    return f"{there} - (sum by ({PER_RESOURCE}) ({requests} {_unless_ended()}) or 0 * {there})"


def idle(scope: Scope) -> str:
    """GPUs that a pod holds and hardly used for half an hour; the value is their utilisation."""
    return f"({workload_utilisation(scope, 'avg_over_time({}[30m])')}) < {HARDLY}"


def not_ready(scope: Scope) -> str:
    """Nodes with GPUs that are not ready; the value is 1."""
    with_gpus = _of_resource("kube_node_status_capacity", scope)
    unready = f"({_ready(scope)} == 0) and on ({PER_NODE}) {with_gpus}"
    return f"group by ({PER_NODE}) ({unready})"


def gpu_nodes(scope: Scope) -> str:
    """Nodes with GPUs, from Kubernetes and from exporters. A node that is down is only in
    Kubernetes; a machine outside of Kubernetes has only an exporter."""
    known = _of_resource("kube_node_status_capacity", scope)
    reporting = gpu(fields.REPORTED, scope)
    return f"group by ({PER_NODE}) ({known}) or group by ({PER_NODE}) ({reporting})"


def or_zero(expression: str) -> str:
    """The expression, with 0 for an empty result."""
    return f"({expression}) or vector(0)"


def _ready(scope: Scope) -> str:
    return nodes("kube_node_status_condition", scope, 'condition="Ready"', 'status="true"')


def _of_resource(metric: str, scope: Scope) -> str:
    return nodes(metric, scope, f'resource="{RESOURCE}"')


def _unless_ended() -> str:
    ended = 'kube_pod_status_phase{phase=~"Succeeded|Failed", cluster=~"$cluster"} == 1'
    return f"unless on (cluster, namespace, pod) ({ended})"


def _once(how: str, by: str, expression: str) -> str:
    """`how` over GPUs and their instances, each once: several jobs may scrape it, and pods that
    share it have a series each."""
    if how == "max":
        return f"max by ({by}) ({expression})"
    labels = dict.fromkeys([*by.split(", "), "UUID", "GPU_I_ID"])
    return f"{how} by ({by}) (max by ({', '.join(labels)}) ({expression}))"


def _selected(metric: str, matchers: list[str]) -> str:
    return f"{metric}{{{', '.join(matchers)}}}"


def _with_node(expression: str) -> str:
    """`node` from the first of the labels that has a value."""
    joined = f'label_join({expression}, "node", "/", "node", "hostname", "Hostname")'
    return f'label_replace({joined}, "node", "$1", "node", "/*([^/]+).*")'
