"""A fleet of 8 nodes with 8 GPUs each, as a Prometheus sees it: the same for every run.

What is odd about it, node by node:

- gpu-1, gpu-2   dcgm-exporter 4.8.3 or newer (`hostname`), pods as `exported_pod`
- gpu-1          its exporter runs in a pod whose name says nothing
- gpu-2          GPU 3 had XID 79 ten minutes ago; GPU 6 has no spare rows
- gpu-3          down for the last twenty minutes: no series of its exporter, its pod is still there
- gpu-4          a pod holds GPU 0 and does nothing; GPU 7 works and no pod has it
- gpu-5          a model without profiling counters, `Hostname`
- gpu-6          `Hostname`; a cordoned node; GPU 7 is in MIG mode with two instances
- gpu-7          honorLabels: the workload's labels are `namespace` and `pod`, and a GPU without a
                 workload has the exporter's own
- gpu-8          an exporter outside of pods, `node` set by the scrape configuration alone; nobody
                 uses it; GPU 7 is unhealthy: its node offers 7 of 8

A second cluster has the same nodes and pods; it was scraped for the last forty minutes only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

BEGIN = 1_767_225_600  # 2026-01-01T00:00:00Z, where a block of Prometheus begins
MINUTES = 115  # within one block of two hours
STEP = 60  # seconds between two scrapes
END = BEGIN + MINUTES * 60
CLUSTER, OTHER_CLUSTER = "alpha", "beta"
OTHER_FOR = 40 * 60  # seconds before the end
DOWN_FOR, XID_FOR = 20 * 60, 10 * 60  # seconds before the end
MEMORY = {"NVIDIA H100 80GB HBM3": 81559, "Tesla T4": 15360}  # MiB
POWER = {"NVIDIA H100 80GB HBM3": (70, 700), "Tesla T4": (10, 70)}  # W, idle and at most


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that asks for GPUs. `gpus`: which of its node it holds; `busy`: how much they work.

    `phase` and `asks` are of kube-state-metrics; a pod without a node has no GPUs.
    """

    namespace: str
    name: str
    node: str
    gpus: tuple[int, ...]
    busy: float
    phase: str = "Running"
    asks: int = 0

    @property
    def requests(self) -> int:
        return self.asks or len(self.gpus)


@dataclass(frozen=True, slots=True)
class Node:
    """A node and how its exporter's series look."""

    name: str
    spelling: str = "hostname"
    model: str = "NVIDIA H100 80GB HBM3"
    honored: bool = False
    labelled: bool = False
    ready: bool = True
    cordoned: bool = False
    allocatable: int = 8

    @property
    def profiled(self) -> bool:
        return self.model != "Tesla T4"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU and the pod that holds it."""

    node: Node
    index: int
    pod: Pod | None

    @property
    def uuid(self) -> str:
        number = int(self.node.name.removeprefix("gpu-"))
        return f"GPU-{number:08x}-0000-4000-8000-{self.index:012x}"

    @property
    def busy(self) -> float:
        """Share of the time in which it works."""
        return 0.7 if self.unclaimed else (self.pod.busy if self.pod else 0.0)

    @property
    def unclaimed(self) -> bool:
        return (self.node.name, self.index) == ("gpu-4", 7)

    @property
    def instances(self) -> int:
        """How many MIG instances it is split into; 1 where it is not."""
        return 2 if (self.node.name, self.index) == ("gpu-6", 7) else 1

    @property
    def xid(self) -> int:
        return 79 if (self.node.name, self.index) == ("gpu-2", 3) else 0

    @property
    def remap_failed(self) -> bool:
        return (self.node.name, self.index) == ("gpu-2", 6)


NODES = (
    Node("gpu-1"),
    Node("gpu-2"),
    Node("gpu-3", ready=False),
    Node("gpu-4"),
    Node("gpu-5", "Hostname", "Tesla T4"),
    Node("gpu-6", "Hostname", cordoned=True),
    Node("gpu-7", "Hostname", honored=True),
    Node("gpu-8", "Hostname", labelled=True, allocatable=7),
)
WHOLE = tuple(range(8))
PODS = (
    Pod("research", "train-0", "gpu-1", WHOLE, 0.95),
    Pod("research", "train-1", "gpu-2", WHOLE, 0.9),
    Pod("research", "train-2", "gpu-3", WHOLE, 0.9),
    Pod("research", "idle-0", "gpu-4", (0,), 0.0),
    Pod("inference", "chat-0", "gpu-4", (1, 2), 0.4),
    Pod("inference", "chat-1", "gpu-4", (3, 4), 0.5),
    *(Pod("inference", f"embed-{i}", "gpu-5", (i,), 0.1 + i / 20) for i in range(6)),
    Pod("batch", "sweep-0", "gpu-6", (0, 1, 2, 3), 0.8),
    Pod("batch", "slice-0", "gpu-6", (7,), 0.3),
    Pod("batch", "sweep-1", "gpu-7", (0, 1, 2, 3, 4), 0.75),
    Pod("batch", "done-0", "gpu-8", (), 0.0, "Succeeded", asks=8),
    Pod("web", "shop-0", "gpu-8", (), 0.0),
    Pod("research", "waits-0", "", (), 0.0, "Pending", asks=16),
)
HOLDERS = {(pod.node, index): pod for pod in PODS for index in pod.gpus}
GPUS = tuple(Gpu(node, i, HOLDERS.get((node.name, i))) for node in NODES for i in WHOLE)


def openmetrics() -> Iterator[str]:
    """The fleet's two hours as OpenMetrics text, line by line, for promtool."""
    for cluster, since in ((CLUSTER, BEGIN), (OTHER_CLUSTER, END - OTHER_FOR)):
        for gpu in GPUS:
            labels = {"cluster": cluster, **exporter_labels(gpu)}
            for metric, value in readings(gpu):
                for instance in range(gpu.instances):
                    yield from _samples(metric, gpu, instance, value, labels, since)
        for metric, about, number in kubernetes():
            text = _labels({"cluster": cluster, **about})
            yield from (f"{metric}{text} {number} {at}\n" for at in range(since, END + 1, STEP))
    yield "# EOF\n"


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
    yield "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", (150_000 * gpu.busy, 0)  # MB/s
    yield "DCGM_FI_DEV_XID_ERRORS", (gpu.xid, 0)
    yield "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", (8 if gpu.remap_failed else 0, 0)
    yield "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", (0, 0)
    yield "DCGM_FI_DEV_ROW_REMAP_FAILURE", (int(gpu.remap_failed), 0)
    if gpu.node.profiled:
        yield "DCGM_FI_PROF_GR_ENGINE_ACTIVE", (gpu.busy, 0)
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
        elif metric == "DCGM_FI_PROF_GR_ENGINE_ACTIVE" and gpu.instances > 1:
            number *= gpu.instances * (instance == 0)  # the first does all the work
        if metric not in STEADY:  # a little life: at most 15 % less, never at the end
            number *= 1 - 0.15 * math.sin((END - at) / 900 + gpu.index) ** 2 * (at < END)
        yield f"{metric}{_labels(labels)} {number:.10g} {at}\n"


def _instance_labels(gpu: Gpu, instance: int) -> dict[str, str]:
    if gpu.instances == 1:
        return {}
    return {"GPU_I_PROFILE": "3g.40gb", "GPU_I_ID": str(instance + 1)}


def _xid_labels(node: Node, code: int) -> dict[str, str]:
    """Newer exporters tell the code in a label too, so that a change is a new series."""
    if node.spelling != "hostname":
        return {}
    return {"err_code": str(code), "err_msg": "No Error" if code == 0 else f"XID {code}"}


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
    """What kube-state-metrics says, the same all the time."""
    for node in NODES:
        about = {"node": node.name}
        resource = {**about, "resource": "nvidia_com_gpu", "unit": "integer"}
        yield "kube_node_status_capacity", resource, 8
        yield "kube_node_status_capacity", {**about, "resource": "cpu", "unit": "core"}, 128
        yield "kube_node_status_allocatable", {**about, "resource": "cpu", "unit": "core"}, 96
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
        if pod.requests:
            yield "kube_pod_container_resource_requests", {**resource, **place}, pod.requests
        processors = {**resource, "resource": "cpu", "unit": "core", **place}
        yield "kube_pod_container_resource_requests", processors, 4
        for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
            yield "kube_pod_status_phase", {**about, "phase": phase}, int(phase == pod.phase)


def _labels(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
