"""A cluster: GPUs are offered, metrics of them are exported, and Prometheus reads these."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from gpufleet.core.names import count_noun
from gpufleet.helm.chart_choice import load_charts
from gpufleet.kube.prometheus import up_by_target
from gpufleet.verify.answers import has_ready_condition, is_gpu_name, runs_image
from gpufleet.verify.cluster import (
    COUNT,
    MONITORS,
    PROMETHEUS_RESOURCE,
    RESOURCE,
    CheckedCluster,
)
from gpufleet.verify.dra import RESOURCE_SLICES, dra_problems, uses_dra
from gpufleet.verify.findings import clusters as kinds
from gpufleet.verify.findings.hosts import SETTINGS
from gpufleet.verify.load import (
    NO_PROXY,
    NONE_FREE,
    count_free_gpus,
    gpu_tolerations,
    last_event,
    plugin_tolerations,
    repels_pods,
)
from gpufleet.verify.monitoring import absent_pods, are_new, scraped_twice
from gpufleet.verify.releases import deployed_release, wrong_versions
from gpufleet.verify.sharing import shared_nodes, sharing_problems

PLUGIN, EXPORTER = "k8s-device-plugin", "dcgm-exporter"
PASSING_TAINTS = ("node.kubernetes.io/", "gpufleet/")
EXPORTER_PORT = 9400
VALUES_OF = {PLUGIN: "device_plugin_values", EXPORTER: "monitoring_exporter_values"}
PLACEMENT = ("nodeSelector", "affinity", "tolerations")
POLICIES = ("nvidia.com", "v1", "clusterpolicies")
VECTOR_ADD = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"
POD_SECONDS = 120
TARGET_SECONDS = 180  # until a new pod is a target


def left_out(cluster: CheckedCluster, image: str) -> set[str]:
    """GPU nodes without a pod of an image, if the inventory's values restrict its placement, or a
    taint of the user keeps it away."""
    chosen = {pod.spec.node_name for pod in cluster.pods if runs_image(pod, image)}
    values = cluster.data.get(VALUES_OF[image]) or {}
    narrowed = any(values.get(key) for key in PLACEMENT)
    without = [node for node in cluster.gpu_nodes if node.metadata.name not in chosen]
    return {
        node.metadata.name
        for node in (without if chosen else ())
        if narrowed or _keeps_away(node, plugin_tolerations(cluster.data))
    } | ({node.metadata.name for node, _ in _claimed_nodes(cluster)} if image == PLUGIN else set())


def _keeps_away(node: Any, tolerations: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a node has a taint that neither Kubernetes nor an upgrade has set for a while."""
    return any(
        not taint.key.startswith(PASSING_TAINTS) and repels_pods(taint, tolerations)
        for taint in node.spec.taints or ()
    )


def missing(cluster: CheckedCluster, image: str) -> str:
    """The names of GPU nodes without a ready pod of an image, or ""."""
    fine = cluster.nodes_with(image) | left_out(cluster, image)
    return ", ".join(
        f"{node.metadata.name}{'' if has_ready_condition(node) else ' (not Ready)'}"
        for node in cluster.gpu_nodes
        if node.metadata.name not in fine
    )


def test_reachable(cluster: CheckedCluster) -> None:
    """The API of the cluster answers."""
    cluster.ask(client.VersionApi(cluster.api).get_code)


def test_settings(cluster: CheckedCluster) -> None:
    """The inventory's settings of the cluster are valid."""
    cluster.expect_settings(SETTINGS)


def test_gpus_are_offered(cluster: CheckedCluster) -> None:
    """Nodes advertise each GPU that GPU feature discovery counted, as often as time-slicing shares
    it, and all are allocatable."""
    cluster.expect(bool(cluster.gpu_nodes), kinds.GPU_NODES_EXPECTED, "a node with GPUs", "none")
    wrong = []
    without = left_out(cluster, PLUGIN)
    shares = int(cluster.data.get("device_plugin_time_slicing") or 1)
    without |= {node.metadata.name for node, _ in _shared_nodes(cluster)}  # gpus_are_shared
    for node in (found for found in cluster.gpu_nodes if found.metadata.name not in without):
        offered = int((node.status.allocatable or {}).get(RESOURCE, 0))
        capacity = int((node.status.capacity or {}).get(RESOURCE, 0))
        physical = (node.metadata.labels or {}).get(COUNT)
        others = {**(node.status.capacity or {}), RESOURCE: "0"}
        renamed = any(is_gpu_name(name) and count != "0" for name, count in others.items())
        wanted = max(capacity, int(physical) * shares if physical and not renamed else 0)
        if offered < wanted or not _advertises(node):
            wrong.append(f"{node.metadata.name} advertises {offered} of {wanted}")
    cluster.expect(
        not wrong, kinds.FEWER_GPUS_ADVERTISED, "all GPUs of every node", ", ".join(wrong)
    )


def test_gpus_are_shared(cluster: CheckedCluster) -> None:
    """Each node with keys about sharing has the device plugin's configuration for it, and
    advertises the resources of this configuration, or does so soon."""
    judged = _shared_nodes(cluster)
    why = "no node has gpu_sharing or MIG devices by gpu_mig, or gpufleet installs no device plugin"
    cluster.need(judged, why)
    keys = {node.metadata.name: own for node, own in judged}
    wrong = _unshared(cluster, (node for node, _ in judged), keys)
    end = time.monotonic() + cluster.sharing_seconds
    while wrong and "configuration" not in "".join(wrong) and time.monotonic() < end:
        time.sleep(1)
        wrong = _unshared(cluster, cluster.listed(cluster.core.list_node), keys)
    expected = f"the resources of {count_noun(len(judged), 'node')} with keys"
    cluster.expect(not wrong, kinds.NOT_SHARED, expected, "; ".join(wrong))


def test_charts_are_of_the_versions_wanted(cluster: CheckedCluster) -> None:
    """Each existing release is deployed, in the chart version of the inventory."""
    found = {chart: deployed_release(cluster, chart) for chart in load_charts().charts}
    there = {chart: release for chart, release in found.items() if release}
    cluster.need(there, "there is no release of these charts")
    server = cluster.ask(client.VersionApi(cluster.api).get_code).git_version
    wrong = wrong_versions(cluster.data, server, there)
    cluster.expect(not wrong, kinds.NOT_AS_APPLIED, "the inventory's versions", "; ".join(wrong))


def test_gpus_can_be_claimed(cluster: CheckedCluster) -> None:
    """Each node with gpu_sharing = "dra" has the label of the DRA driver, which offers all its GPUs
    in ResourceSlices."""
    judged = _claimed_nodes(cluster)
    cluster.need(judged, 'no node has gpu_sharing = "dra"')
    slices, wrong = cluster.custom(RESOURCE_SLICES), []
    for node, keys in judged:
        name = node.metadata.name
        problems = dra_problems(node, keys, slices, cluster.count_gpus(name))
        wrong += [f"{name}: {', '.join(problems)}"] if problems else []
    expected = f"all GPUs of {count_noun(len(judged), 'node')}"
    cluster.expect(not wrong, kinds.NOT_CLAIMABLE, expected, "; ".join(wrong))


def _claimed_nodes(cluster: CheckedCluster) -> list[tuple[Any, Mapping[str, Any]]]:
    """The nodes whose GPUs the DRA driver offers, with their hosts' keys."""
    found = [(node, cluster.target.gpu_keys.get(node.metadata.name, {})) for node in cluster.nodes]
    return [(node, keys) for node, keys in found if uses_dra(keys)]


def _unshared(
    cluster: CheckedCluster, nodes: Iterable[Any], keys: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """How nodes differ from their keys, each with its name."""
    wrong = []
    for node in nodes:
        name, labels = node.metadata.name, node.metadata.labels or {}
        own, offered = keys.get(name), node.status.allocatable or {}
        gpus = cluster.count_gpus(name)
        problems = sharing_problems(own, cluster.data, labels, offered, gpus) if own else []
        wrong += [f"{name}: {', '.join(problems)}"] if problems else []
    return wrong


def _shared_nodes(cluster: CheckedCluster) -> list[tuple[Any, Mapping[str, Any]]]:
    """The nodes that a device plugin of gpufleet shares by their keys, with these keys."""
    found = shared_nodes(cluster.gpu_nodes, cluster.target.gpu_keys, cluster.data)
    managed = found and _is_managed(cluster, "nvidia-device-plugin", "device_plugin_enabled")
    return found if managed else []


def _is_managed(cluster: CheckedCluster, chart: str, key: str) -> bool:
    """Whether the inventory, or a release of gpufleet, has the component of a chart."""
    operator = cluster.data.get("cluster_stack") == "gpu-operator"
    wanted = cluster.data.get(key, "auto")
    return wanted is True or (
        wanted == "auto" and bool(operator or deployed_release(cluster, chart))
    )


def _advertises(node: Any) -> bool:
    """Whether a node advertises GPUs of any kind."""
    resources = node.status.allocatable or {}
    return any(is_gpu_name(name) and count != "0" for name, count in resources.items())


def _ports(pod: Any) -> set[int]:
    return {port.container_port for part in pod.spec.containers for port in part.ports or ()}


def test_plugin_on_every_gpu_node(cluster: CheckedCluster) -> None:
    """A ready pod of the device plugin is on every node with GPUs, if gpufleet manages it."""
    claimed = [node.metadata.name for node, _ in _claimed_nodes(cluster)]
    others = [node for node in cluster.gpu_nodes if node.metadata.name not in claimed]
    cluster.need(
        _is_managed(cluster, "nvidia-device-plugin", "device_plugin_enabled")
        or not all(_advertises(node) for node in others),
        "gpufleet has not installed the device plugin, and another one advertises the GPUs",
    )
    without = missing(cluster, PLUGIN)
    cluster.expect(not without, kinds.NOT_AS_APPLIED, "a ready pod each", f"none on {without}")


def test_operator_is_ready(cluster: CheckedCluster) -> None:
    """The GPU Operator's ClusterPolicy is ready, if there is one."""
    policies = cluster.custom(POLICIES)
    wanted = cluster.data.get("cluster_stack") == "gpu-operator"
    cluster.need(policies or wanted, "cluster_stack is not gpu-operator")
    states = [
        f"{policy['metadata']['name']} is {(policy.get('status') or {}).get('state') or 'new'}"
        for policy in policies
    ]
    ready = bool(states) and all(state.endswith(" is ready") for state in states)
    found = ", ".join(states) or "no ClusterPolicy"
    cluster.expect(ready, kinds.OPERATOR_STATE, "a ClusterPolicy that is ready", found)


def test_exporter_on_every_gpu_node(cluster: CheckedCluster) -> None:
    """A ready pod of dcgm-exporter is on every node with GPUs."""
    cluster.need(
        cluster.data.get("monitoring_exporter") is not False, "monitoring_exporter is false"
    )
    cluster.need(cluster.data.get("monitoring_enabled") is not False, "monitoring_enabled is false")
    cluster.need(
        _is_managed(cluster, "dcgm-exporter", "monitoring_exporter")
        or not any(EXPORTER_PORT in _ports(pod) for pod in cluster.pods),
        "gpufleet has not installed an exporter, and another one serves metrics",
    )
    without = missing(cluster, EXPORTER)
    cluster.expect(not without, kinds.NOT_AS_APPLIED, "a ready pod each", f"none on {without}")


@pytest.fixture(scope="module")
def gpu_pod(cluster: CheckedCluster) -> Iterator[Any]:
    """A pod that adds two vectors on a GPU, when it has finished or timed out, or the reason why
    the API server refuses it."""
    tolerations = gpu_tolerations(cluster.data)
    cluster.need(count_free_gpus(cluster.gpu_nodes, cluster.pods_now(), tolerations), NONE_FREE)
    image = cluster.data.get("verify_gpu_image") or VECTOR_ADD
    container = {"name": "add", "image": image, "resources": {"limits": {RESOURCE: "1"}}}
    runtime = cluster.data.get("device_plugin_runtime_class")
    body = {
        "metadata": NO_PROXY,
        "spec": {
            "restartPolicy": "Never",
            "tolerations": list(tolerations),
            "containers": [container],
            **({"runtimeClassName": runtime} if runtime else {}),
        },
    }
    job = {
        "metadata": {"generateName": "gpufleet-verify-"},
        "spec": {"template": body, "backoffLimit": 0},
    }
    batch = cluster.batch
    name = cluster.ask(batch.create_namespaced_job, "default", job).metadata.name
    try:
        yield _ended(cluster, name)
    finally:
        cluster.find(batch.delete_namespaced_job, name, "default", propagation_policy="Background")


def _ended(cluster: CheckedCluster, job: str) -> Any:
    """The pod of a job, as soon as it has ended, or the reason why the job has no pod."""
    end = time.monotonic() + POD_SECONDS
    pod = None
    while time.monotonic() < end and (pod is None or pod.status.phase in ("Pending", "Running")):
        found = cluster.ask(
            cluster.core.list_namespaced_pod, "default", label_selector=f"job-name={job}"
        ).items
        pod = found[0] if found else None
        time.sleep(0.2)
    return pod or "; ".join(filter(None, ["no pod", last_event(cluster, job)]))


def test_a_pod_with_a_gpu_finishes(cluster: CheckedCluster, gpu_pod: Any) -> None:
    """A pod that requests a GPU is scheduled and succeeds."""
    if isinstance(gpu_pod, str):
        cluster.expect(False, kinds.GPU_POD, "Succeeded", gpu_pod)
    phase = gpu_pod.status.phase
    reasons = [
        condition.message for condition in gpu_pod.status.conditions or () if condition.message
    ]
    if phase != "Succeeded":  # the pod is deleted afterwards
        reasons.append(last_event(cluster, gpu_pod.metadata.name))
    found = "; ".join(filter(None, [phase, *reasons]))
    cluster.expect(phase == "Succeeded", kinds.GPU_POD, "Succeeded", found)


def test_vectors_are_added_on_the_gpu(cluster: CheckedCluster, gpu_pod: Any) -> None:
    """The log of that pod reports that the GPU computed."""
    ended = not isinstance(gpu_pod, str) and gpu_pod.status.phase == "Succeeded"
    cluster.need(ended, "the pod did not finish (GF795)")
    image = str(cluster.data.get("verify_gpu_image") or VECTOR_ADD)
    cluster.need("vectoradd" in image, "verify_gpu_image is not the sample that adds vectors")
    try:
        text = str(cluster.core.read_namespaced_pod_log(gpu_pod.metadata.name, "default"))
    except ApiException as error:
        pytest.skip(
            f"the kubelet does not return the pod's log, so nothing shows what ran: {error.reason}"
        )
    cluster.expect("PASSED" in text, kinds.VECTOR_ADD, "Test PASSED", text[-200:])


def need_monitoring(cluster: CheckedCluster) -> None:
    """Skip a check of the way from the exporter to Prometheus that the inventory switches off."""
    on = cluster.data.get("monitoring_enabled") is not False
    cluster.need(on, "monitoring_enabled is False")
    wanted = cluster.data.get("monitoring_prometheus")
    cluster.need(wanted != "none", "monitoring_prometheus is none")


def test_a_monitor_is_selected(cluster: CheckedCluster) -> None:
    """A ServiceMonitor of the exporter exists, and a Prometheus resource selects it."""
    need_monitoring(cluster)
    prometheuses = cluster.custom(PROMETHEUS_RESOURCE)
    cluster.need(prometheuses, "the cluster has no Prometheus resource")
    monitors = [
        monitor for monitor in cluster.custom(MONITORS) if EXPORTER in monitor["metadata"]["name"]
    ]
    jobs = any(one["spec"].get("additionalScrapeConfigs") for one in prometheuses)
    cluster.need(monitors or not jobs, "the exporter is found by a scrape job")
    selected = [
        monitor["metadata"]["name"]
        for monitor in monitors
        for prometheus in prometheuses
        if _selects(prometheus["spec"], monitor["metadata"].get("labels") or {})
    ]
    names = ", ".join(monitor["metadata"]["name"] for monitor in monitors) or "no ServiceMonitor"
    cluster.expect(bool(selected), kinds.NOT_SCRAPED, "a monitor that is selected", names)


def _selects(spec: dict[str, Any], labels: dict[str, str]) -> bool:
    selector = spec.get("serviceMonitorSelector")
    if selector is None:
        return False
    return all(labels.get(name) == value for name, value in selector.get("matchLabels", {}).items())


def test_prometheus_scrapes_the_exporter(cluster: CheckedCluster) -> None:
    """Every exporter pod is a target of Prometheus, and is up; a new one becomes a target soon."""
    need_monitoring(cluster)
    pods = cluster.pods_with(EXPORTER)
    end = time.monotonic() + TARGET_SECONDS
    while True:
        up = up_by_target(cluster.need_series("up"), EXPORTER)
        missed = absent_pods(up, pods)
        late = time.monotonic() > end or not are_new(missed, datetime.now(timezone.utc))
        if not missed or late:
            break
        time.sleep(1)
    wrong = [name for name, value in up.items() if value != "1"]
    wrong += [f"{pod.metadata.name} is no target" for pod in missed]
    found = f"{len(up)} targets, not up: {', '.join(wrong) or 'none'}"
    cluster.expect(bool(up) and not wrong, kinds.NOT_SCRAPED, "exporters that are up", found)


def test_a_gpu_is_scraped_by_one_job(cluster: CheckedCluster) -> None:
    """No second job of Prometheus collects the metrics of a GPU."""
    series = cluster.need_series("DCGM_FI_DEV_GPU_TEMP or DCGM_FI_DEV_FB_USED")
    cluster.need(series, "no metrics of GPUs yet (GF797)")
    jobs = scraped_twice(series)
    cluster.expect(not jobs, kinds.SCRAPED_TWICE, "one job", "; ".join(jobs))


def test_metrics_name_pods(cluster: CheckedCluster) -> None:
    """The metrics of a GPU that a pod uses have the labels of that pod."""
    series = cluster.need_series("DCGM_FI_DEV_GPU_UTIL or DCGM_FI_DEV_FB_USED")
    cluster.need(series, "no metrics of GPUs yet (GF797)")
    holders = {
        pod.metadata.name
        for pod in cluster.pods
        if pod.status.phase == "Running"
        and any(RESOURCE in (part.resources.limits or {}) for part in pod.spec.containers)
    }
    cluster.need(holders, "no pod holds a GPU")
    # with honorLabels, `pod` is the workload's pod, not the exporter's
    labels = [one["metric"] for one in series]
    named = {found.get("exported_pod") or found.get("pod") for found in labels}
    found = (
        f"none of {len(series)} series names a pod with GPUs, of {count_noun(len(holders), 'pod')}"
    )
    cluster.expect(bool(named & holders), kinds.NO_POD_LABELS, "series that name them", found)


def test_grafana_port(cluster: CheckedCluster) -> None:
    """Grafana has the node port that the inventory gives it."""
    port = cluster.data.get("monitoring_grafana_node_port")
    cluster.need(port, "monitoring_grafana_node_port is not set")
    services = cluster.listed(cluster.core.list_service_for_all_namespaces)
    found = {
        entry.node_port: service.metadata.name
        for service in services
        if (service.spec.selector or {}).get("app.kubernetes.io/name") == "grafana"
        for entry in service.spec.ports
    }
    cluster.expect(
        port in found, kinds.NOT_AS_APPLIED, f"port {port}", f"{sorted(map(str, found))}"
    )
