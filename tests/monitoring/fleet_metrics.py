"""The series of the fleet, as its exporters, kube-state-metrics and node_exporter report them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.monitoring.fleet import (
    BEGIN,
    CLUSTER,
    DOWN_FOR,
    END,
    GPUS,
    MIG_PROFILE,
    MIG_RESOURCE,
    NODES,
    OTHER_CLUSTER,
    OTHER_FOR,
    PODS,
    STEP,
    XID_FOR,
    Gpu,
    Node,
    Pod,
)
from tests.monitoring.fleet_machines import exporter, machine

MEMORY = {"NVIDIA H100 80GB HBM3": 81559, "Tesla P40": 23040}  # MiB
POWER = {"NVIDIA H100 80GB HBM3": (70, 700), "Tesla P40": (50, 250)}  # W, idle and at most


def openmetrics() -> Iterator[str]:
    """The fleet's two hours as OpenMetrics text, line by line, for promtool."""
    for cluster, since in ((CLUSTER, BEGIN), (OTHER_CLUSTER, END - OTHER_FOR)):
        for gpu in GPUS:
            labels = {"cluster": cluster, **exporter_labels(gpu)}
            for metric, value in readings(gpu):
                for instance in range(gpu.instances):
                    yield from _samples(metric, gpu, instance, value, labels, since)
        yield from _machines(cluster, since)
        for metric, about, number in kubernetes():
            text = _labels({"cluster": cluster, **about})
            yield from (f"{metric}{text} {number} {at}\n" for at in range(since, END + 1, STEP))
    yield "# EOF\n"


def _machines(cluster: str, since: int) -> Iterator[str]:
    """The series of node_exporter for GPU nodes and for a node without GPUs."""
    pods = {node.name for node in NODES if node.has_exporter_pod}
    down = {node.name for node in NODES if not node.ready}
    found = [(node.name, node.infiniband) for node in NODES] + [("control-1", False)]
    for number, (name, infiniband) in enumerate(found, start=1):
        until = END - DOWN_FOR if name in down else END
        of_pods = exporter(name) if name in pods else ()
        for metric, about, (start, growth) in (*machine(name, number, infiniband), *of_pods):
            text = _labels({"cluster": cluster, **about})
            for at in range(since, until + 1, STEP):
                yield f"{metric}{text} {start + growth * (at - BEGIN):.10g} {at}\n"


def readings(gpu: Gpu) -> Iterator[tuple[str, tuple[float, float]]]:
    """Field -> its value at the beginning and how much it grows per second."""
    idle, most = POWER[gpu.node.model]
    power = idle + (most - idle) * gpu.busy
    used = round(MEMORY[gpu.node.model] * (0.9 if gpu.pod else 0.01))
    yield "DCGM_FI_DEV_GPU_UTIL", (100 * gpu.busy * (gpu.instances == 1), 0)
    yield "DCGM_FI_DEV_MEM_COPY_UTIL", (50 * gpu.busy, 0)
    yield "DCGM_FI_DEV_ENC_UTIL", (0, 0)
    yield "DCGM_FI_DEV_DEC_UTIL", (5 * gpu.busy, 0)
    yield "DCGM_FI_DEV_FB_USED", (used, 0)
    yield "DCGM_FI_DEV_FB_FREE", (MEMORY[gpu.node.model] - used, 0)
    yield "DCGM_FI_DEV_GPU_TEMP", (35 + 40 * gpu.busy + gpu.index / 2, 0)
    yield "DCGM_FI_DEV_MEMORY_TEMP", (40 + 45 * gpu.busy if gpu.node.profiled else 0, 0)
    yield "DCGM_FI_DEV_POWER_USAGE", (power, 0)
    yield "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", (5e9, 1000 * power)  # mJ
    yield "DCGM_FI_DEV_SM_CLOCK", (345 + 1500 * gpu.busy, 0)
    yield "DCGM_FI_DEV_MEM_CLOCK", (2619, 0)
    yield "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", (2, 0.1 if gpu.xid else 0)
    yield "DCGM_FI_DEV_XID_ERRORS", (gpu.xid, 0)
    if gpu.node.nvlink:
        yield "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", (150_000 * gpu.busy, 0)  # MB/s
    if gpu.node.remaps:
        yield "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", (8 if gpu.remap_failed else 0, 0)
        yield "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", (0, 0)
        yield "DCGM_FI_DEV_ROW_REMAP_FAILURE", (int(gpu.remap_failed), 0)
    if gpu.node.profiled:
        yield "DCGM_FI_PROF_GR_ENGINE_ACTIVE", (gpu.busy, 0)
        yield "DCGM_FI_PROF_SM_ACTIVE", (gpu.busy * 0.8, 0)
        yield "DCGM_FI_PROF_SM_OCCUPANCY", (gpu.busy * 0.4, 0)
        yield "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", (gpu.busy / 2, 0)
        yield "DCGM_FI_PROF_DRAM_ACTIVE", (gpu.busy / 3, 0)
        yield "DCGM_FI_PROF_PCIE_TX_BYTES", (2e9 * gpu.busy, 0)
        yield "DCGM_FI_PROF_PCIE_RX_BYTES", (3e9 * gpu.busy, 0)


def _samples(
    metric: str,
    gpu: Gpu,
    instance: int,
    value: tuple[float, float],
    labels: dict[str, str],
    since: int,
) -> Iterator[str]:
    """One field of one GPU, or of its instance, over time, as long as its node was up."""
    start, growth = value
    labels = labels | _instance_labels(gpu, instance)
    until = END if gpu.node.ready else END - DOWN_FOR
    for at in range(since, until + 1, STEP):
        number = start + growth * (at - BEGIN)
        if metric == "DCGM_FI_DEV_XID_ERRORS":
            number = number if at >= END - XID_FOR else 0
            labels |= _xid_labels(gpu.node, int(number))
        elif metric.startswith("DCGM_FI_DEV_FB_"):
            number /= gpu.instances  # each has its part of the memory
        elif metric in BY_INSTANCE and gpu.instances > 1:
            number *= gpu.instances * (instance == 0)  # the first does all the work
        if metric not in STEADY:  # a little life: at most 15 % less, never at the end
            number *= 1 - 0.15 * math.sin((END - at) / 900 + gpu.index) ** 2 * (at < END)
        yield f"{metric}{_labels(labels)} {number:.10g} {at}\n"


def _instance_labels(gpu: Gpu, instance: int) -> dict[str, str]:
    if gpu.instances == 1:
        return {}
    return {"GPU_I_PROFILE": MIG_PROFILE, "GPU_I_ID": str(instance + 1)}


def _xid_labels(node: Node, code: int) -> dict[str, str]:
    """Newer exporters have the code in a label too, so that a change is a new series."""
    if node.spelling != "hostname":
        return {}
    return {"err_code": str(code), "err_msg": "No Error" if code == 0 else f"XID {code}"}


# DCGM 4.6.0 translates an instance to its GPU for the other fields (dcgmlib/src/dcgm_fields.cpp,
# entityLevel; DcgmCacheManager.cpp).
BY_INSTANCE = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_SM_ACTIVE",
    "DCGM_FI_PROF_SM_OCCUPANCY",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_DRAM_ACTIVE",
}
STEADY = {
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_MEM_CLOCK",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
}


def exporter_labels(gpu: Gpu) -> dict[str, str]:
    """The labels that Prometheus keeps of a series of the exporter."""
    node, number = gpu.node, gpu.node.name[-1]
    name = f"metrics-{number}x7k2" if number == "1" else f"dcgm-exporter-{number}x7k2"
    own = {} if node.labelled else {"namespace": "monitoring", "pod": name}
    found = {
        "job": "dcgm-exporter",
        "instance": f"10.0.0.{number}:9400",
        **own,
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        "device": f"nvidia{gpu.index}",
        "modelName": node.model,
        "node" if node.labelled else node.spelling: node.name,
    }
    if gpu.pod:
        prefix = "" if node.honored else "exported_"
        found |= {f"{prefix}namespace": gpu.pod.namespace, f"{prefix}pod": gpu.pod.name}
    return found


def kubernetes() -> Iterator[tuple[str, dict[str, str], int]]:
    """Metrics of kube-state-metrics, which do not change."""
    for node in NODES:
        about = {"node": node.name}
        resource = {**about, "resource": "nvidia_com_gpu", "unit": "integer"}
        yield "kube_node_status_capacity", resource, 8
        yield "kube_node_status_capacity", {**about, "resource": "cpu", "unit": "core"}, 128
        yield "kube_node_status_allocatable", {**about, "resource": "cpu", "unit": "core"}, 96
        for metric in ("capacity", "allocatable") if node.instances else ():
            parts = {**resource, "resource": MIG_RESOURCE}
            yield f"kube_node_status_{metric}", parts, node.instances
        pressure = {**about, "condition": "DiskPressure", "status": "true"}
        yield "kube_node_status_condition", pressure, 0
        yield "kube_node_status_allocatable", resource, node.allocatable
        yield "kube_node_spec_unschedulable", about, int(node.cordoned)
        for status, value in (("true", node.ready), ("unknown", not node.ready), ("false", False)):
            condition = {**about, "condition": "Ready", "status": status}
            yield "kube_node_status_condition", condition, int(value)
    yield "kube_node_status_capacity", {"node": "control-1", "resource": "cpu", "unit": "core"}, 8
    yield "kube_node_spec_unschedulable", {"node": "control-1"}, 0
    for status, number in (("true", 0), ("unknown", 1), ("false", 0)):  # down, and without GPUs
        condition = {"node": "control-1", "condition": "Ready", "status": status}
        yield "kube_node_status_condition", condition, number
    for pod in PODS:
        about = {"namespace": pod.namespace, "pod": pod.name, "uid": f"uid-{pod.name}"}
        resource = {**about, "container": "main", "resource": "nvidia_com_gpu", "unit": "integer"}
        place = {"node": pod.node} if pod.node else {}
        for container, number in _containers(pod):
            asking = {**resource, **place, "container": container}
            yield "kube_pod_container_resource_requests", asking, number
        if pod.parts:
            asking = {**resource, **place, "resource": MIG_RESOURCE}
            yield "kube_pod_container_resource_requests", asking, pod.parts
        processors = {**resource, "resource": "cpu", "unit": "core", **place}
        yield "kube_pod_container_resource_requests", processors, 4
        for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
            yield "kube_pod_status_phase", {**about, "phase": phase}, int(phase == pod.phase)


def _containers(pod: Pod) -> list[tuple[str, int]]:
    """Its containers that ask for GPUs, and for how many."""
    if pod.name.startswith("chat-"):
        return [("main", 1), ("draft", pod.requests - 1)]
    return [("main", pod.requests)] if pod.requests else []


def _labels(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
