"""For each panel of each dashboard the answers to its queries, in their order."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

from tests.monitoring import fleet_machines as machines
from tests.monitoring.fleet import DOWN_FOR, GPUS, Gpu
from tests.monitoring.fleet_answers import (
    Answer,
    at_work,
    busy,
    by_gpu,
    by_instance,
    by_namespace,
    by_node,
    by_pod,
    first_instance,
    free,
    free_instances,
    gpus,
    grouped,
    held,
    installed,
    memory_share,
    nodes,
    number,
    pods,
    profiled,
    ratio,
    reading,
    requested,
    taken,
    total,
    usable,
    waiting,
)
from tests.monitoring.fleet_rows import Choice

TEMPERATURE = reading("DCGM_FI_DEV_GPU_TEMP")
POWER = reading("DCGM_FI_DEV_POWER_USAGE")
XID = reading("DCGM_FI_DEV_XID_ERRORS")
USED = reading("DCGM_FI_DEV_FB_USED")
LEFT = reading("DCGM_FI_DEV_FB_FREE")
SENT = reading("DCGM_FI_PROF_PCIE_TX_BYTES")
RECEIVED = reading("DCGM_FI_PROF_PCIE_RX_BYTES")
TENSOR = reading("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE")
REMAP_FAILED = reading("DCGM_FI_DEV_ROW_REMAP_FAILURE")

INSTALLED = number(installed)
USABLE = number(usable)
HELD = number(taken)
AT_WORK = number(at_work)
REPORT = number(lambda choice: len(gpus(choice)))
DRAWN = total(lambda choice: map(POWER, gpus(choice)))
WAITED_FOR = total(lambda choice: (pod.requests for pod in waiting(choice)))
NVLINK = by_gpu(lambda gpu: 150e9 * gpu.busy, lambda gpu: gpu.node.nvlink)
CLOCK = by_gpu(lambda gpu: (345 + 1500 * gpu.busy) * 1e6)
REPLAYS = by_gpu(lambda gpu: 6 if gpu.xid else 0)
WAITING = requested(lambda pod: (pod.namespace, pod.name), waiting)
HOLDING = requested(lambda pod: (pod.node, pod.namespace, pod.name))


def nodes_down(choice: Choice) -> dict[tuple[str, ...], float]:
    return {(node.name,): 1 for node in nodes(choice) if not node.ready}


def unhealthy(choice: Choice) -> dict[tuple[str, ...], float]:
    missing = {(node.name,): 8 - node.allocatable for node in nodes(choice)}
    return {name: number for name, number in missing.items() if number}


def models(choice: Choice) -> dict[tuple[str, ...], float]:
    return grouped((((gpu.node.model,), 1) for gpu in gpus(choice)), sum)


def node_memory(choice: Choice) -> dict[tuple[str, ...], float]:
    names = {gpu.node.name for gpu in gpus(choice)}
    return {
        (name,): memory_share(gpu for gpu in gpus(choice) if gpu.node.name == name)
        for name in names
    }


def pod_memory(choice: Choice) -> dict[tuple[str, ...], float]:
    return {
        (pod.namespace, pod.name): memory_share(gpu for gpu, its in held(choice) if its == pod)
        for _, pod in held(choice)
    }


def on_gpu(value: Callable[[Gpu], float]) -> Answer:
    """node, gpu, namespace, pod -> a field."""
    return lambda choice: {
        (gpu.node.name, str(gpu.index), pod.namespace, pod.name): value(gpu)
        for gpu, pod in held(choice)
    }


def idle(choice: Choice) -> dict[tuple[str, ...], float]:
    return {
        (pod.namespace, pod.name, gpu.node.name, str(gpu.index)): 0
        for gpu, pod in held(choice)
        if not gpu.busy
    }


def kwh_of_an_hour(choice: Choice) -> dict[tuple[str, ...], float]:
    """By namespace; a node that went down counts for the time before."""
    hours = {True: 1.0, False: 1 - DOWN_FOR / 3600}
    spent = [
        ((gpu.pod.namespace,), POWER(gpu) / 1000 * hours[gpu.node.ready])
        for gpu in GPUS
        if gpu.pod and choice.takes_pod(gpu.pod)
    ]
    return grouped(spent, sum)


def kwh_by_node(choice: Choice) -> dict[tuple[str, ...], float]:
    """A node that went down counts for the time before."""
    hours = {True: 1.0, False: 1 - DOWN_FOR / 3600}
    spent = (((gpu.node.name,), POWER(gpu) / 1000 * hours[gpu.node.ready]) for gpu in GPUS)
    return grouped(spent, sum)


def of_exporters(value: float) -> Answer:
    return lambda choice: {
        (node.name,): value for node in nodes(choice) if node.ready and node.has_exporter_pod
    }


def infiniband(value: float) -> Answer:
    return lambda choice: {(g.node.name,): value for g in gpus(choice) if g.node.infiniband}


def most_free(choice: Choice) -> float:
    return max(free(choice).values(), default=0)


FLEET: dict[str, list[Answer]] = {
    "GPUs": [INSTALLED],
    "GPUs that report": [REPORT],
    "Nodes not ready": [number(lambda choice: len(nodes_down(choice)))],
    "With an XID": [total(lambda choice: (gpu.xid > 0 for gpu in gpus(choice)))],
    "Allocated": [ratio(taken, installed)],
    "Power": [DRAWN],
    "Utilisation by node": [by_node(busy, mean)],
    "GPUs held and at work": [INSTALLED, HELD, AT_WORK],
    "Memory in use by node": [node_memory],
    "Power by node": [by_node(POWER, sum)],
    "Nodes over time": [
        number(lambda choice: len(nodes(choice))),
        number(lambda choice: len(nodes_down(choice))),
    ],
    "GPUs over time": [INSTALLED, REPORT, total(lambda choice: unhealthy(choice).values())],
    "Energy by node": [kwh_by_node],
    "Hottest GPU of each node": [by_node(TEMPERATURE, max)],
    "GPUs by model": [models],
    "GPUs with an XID": [by_gpu(XID, XID, identity=True)],
    "GPUs without spare rows": [by_gpu(REMAP_FAILED, lambda gpu: gpu.remap_failed, identity=True)],
    "Nodes that are not ready": [nodes_down],
}
NODE: dict[str, list[Answer]] = {
    "GPUs": [INSTALLED],
    "GPUs that report": [REPORT],
    "Unhealthy GPUs": [total(lambda choice: unhealthy(choice).values())],
    "GPUs held by pods": [HELD],
    "GPUs free for pods": [total(lambda choice: free(choice).values())],
    "Power": [DRAWN],
    "Utilisation": [by_gpu(busy)],
    "Memory in use": [by_gpu(lambda gpu: memory_share([gpu]))],
    "Data over PCIe": [by_gpu(lambda gpu: SENT(gpu) + RECEIVED(gpu), profiled)],
    "Data over NVLink": [NVLINK],
    "Temperature": [by_gpu(TEMPERATURE)],
    "Power by GPU": [by_gpu(POWER)],
    "SM clock": [CLOCK],
    "PCIe replays": [REPLAYS],
    "Pods that hold GPUs": [HOLDING],
    "GPUs and their pods": [on_gpu(busy)],
    "Processors at work": [by_node(lambda gpu: machines.PROCESSORS, mean)],
    "Memory of the machine in use": [by_node(lambda gpu: machines.MEMORY, mean)],
    "Fullest file system": [by_node(lambda gpu: machines.FULLEST, mean)],
    "Disks": [
        by_node(lambda gpu: machines.READ, mean),
        by_node(lambda gpu: machines.WRITTEN, mean),
    ],
    "Ethernet": [
        by_node(lambda gpu: machines.RECEIVED, mean),
        by_node(lambda gpu: machines.SENT, mean),
    ],
    "Exporter: memory": [of_exporters(machines.EXPORTER_MEMORY)],
    "Exporter: processors": [of_exporters(machines.EXPORTER_TIME)],
    "InfiniBand": [infiniband(machines.PORT), infiniband(machines.PORT / 2)],
}
GPU: dict[str, list[Answer]] = {
    "GPUs": [by_gpu(XID, identity=True)],
    "Pods": [on_gpu(USED)],
    "Utilisation": [by_gpu(busy)],
    "Tensor cores and memory at work": [
        by_gpu(TENSOR, profiled),
        by_gpu(reading("DCGM_FI_PROF_DRAM_ACTIVE"), profiled),
    ],
    "Processors at work": [
        by_gpu(reading("DCGM_FI_PROF_SM_ACTIVE"), profiled),
        by_gpu(reading("DCGM_FI_PROF_SM_OCCUPANCY"), profiled),
    ],
    "Memory": [by_gpu(USED), by_gpu(LEFT)],
    "Copies and video": [
        by_gpu(reading(f"DCGM_FI_DEV_{part}_UTIL")) for part in ("MEM_COPY", "ENC", "DEC")
    ],
    "Data over PCIe": [by_gpu(SENT, profiled), by_gpu(RECEIVED, profiled)],
    "Data over NVLink": [NVLINK],
    "Utilisation by instance": [by_instance(first_instance(busy))],
    "Memory in use by instance": [by_instance(lambda gpu, number: memory_share([gpu]))],
    "Tensor cores and memory at work by instance": [
        by_instance(first_instance(TENSOR)),
        by_instance(first_instance(reading("DCGM_FI_PROF_DRAM_ACTIVE"))),
    ],
    "Pods by instance": [by_instance(lambda gpu, number: USED(gpu) / gpu.instances, pods=True)],
    "Temperature": [by_gpu(TEMPERATURE), by_gpu(reading("DCGM_FI_DEV_MEMORY_TEMP"))],
    "Power": [by_gpu(POWER), by_gpu(POWER)],
    "Clocks": [CLOCK, by_gpu(lambda gpu: 2619e6)],
    "XID": [by_gpu(XID)],
    "Remapped rows of memory": [
        by_gpu(reading(field), lambda gpu: gpu.node.remaps)
        for field in (
            "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
            "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
            "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        )
    ],
    "PCIe replays": [REPLAYS],
}
WORKLOAD: dict[str, list[Answer]] = {
    "GPUs held": [HELD],
    "Pods with GPUs": [number(lambda choice: len(pods(choice)))],
    "Utilisation of what is held": [number(lambda c: mean(gpu.busy for gpu, _ in held(c)))],
    "Held and idle": [number(lambda choice: len(idle(choice)))],
    "GPUs waited for": [WAITED_FOR],
    "Power": [total(lambda choice: (POWER(gpu) for gpu, _ in held(choice)))],
    "GPUs held by namespace": [requested(lambda pod: (pod.namespace,))],
    "Utilisation by namespace": [by_namespace(busy, mean)],
    "Power by namespace": [by_namespace(POWER, sum)],
    "Energy by namespace": [kwh_of_an_hour],
    "GPU hours by namespace": [requested(lambda pod: (pod.namespace,))],
    "Utilisation by pod": [by_pod(busy, mean)],
    "Memory in use by pod": [pod_memory],
    "Tensor cores at work by pod": [by_pod(TENSOR, mean, profiled)],
    "Pods that hold GPUs": [HOLDING],
    "GPUs that are held and idle": [idle],
    "Pods that wait for GPUs": [WAITING],
}
CAPACITY: dict[str, list[Answer]] = {
    "Installed": [INSTALLED],
    "Usable": [USABLE],
    "Held": [HELD],
    "Free": [total(lambda choice: free(choice).values())],
    "Most free on one node": [number(most_free)],
    "Waited for": [WAITED_FOR],
    "Installed, usable, held, at work": [INSTALLED, USABLE, HELD, AT_WORK],
    "Held of what is installed": [ratio(taken, installed)],
    "Work of what is installed": [ratio(lambda c: sum(map(busy, gpus(c))), installed)],
    "Free by node": [free],
    "Held by node": [requested(lambda pod: (pod.node,))],
    "Held by namespace": [requested(lambda pod: (pod.namespace,))],
    "Nodes that offer fewer GPUs than they have": [unhealthy],
    "MIG devices that no pod holds": [free_instances],
    "Held and idle": [idle],
    "At work without a pod": [by_gpu(busy, lambda gpu: gpu.unclaimed, identity=True)],
    "Pods that wait": [WAITING],
}
ANSWERS = {
    "fleet": FLEET,
    "node": NODE,
    "gpu": GPU,
    "workload": WORKLOAD,
    "capacity": CAPACITY,
}
