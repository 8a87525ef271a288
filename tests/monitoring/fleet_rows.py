"""The results that the dashboards' queries must return, computed from the fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dashboards.model import Rows
from tests.monitoring.fleet import (
    GPUS,
    MIG_PROFILE,
    MIG_RESOURCE,
    NODES,
    PODS,
    Gpu,
    Node,
    Pod,
)

Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's selection for each variable. An empty set is All. The cluster is fixed."""

    node: frozenset[str] = frozenset()
    gpu: frozenset[str] = frozenset()
    namespace: frozenset[str] = frozenset()

    def only(self, variables: tuple[str, ...]) -> Choice:
        """The choice on a dashboard that has these variables alone."""
        kept = {name: getattr(self, name) for name in self.__slots__ if name in variables}
        return Choice(**kept)

    def text(self, name: str) -> str:
        """The value of a variable as Grafana inserts it into a query."""
        chosen = sorted(getattr(self, name))
        return "(" + "|".join(chosen) + ")" if len(chosen) > 1 else (chosen or [".*"])[0]

    def takes(self, gpu: Gpu) -> bool:
        node = not self.node or gpu.node.name in self.node
        return node and (not self.gpu or str(gpu.index) in self.gpu)

    def takes_pod(self, pod: Pod) -> bool:
        node = not self.node or pod.node in self.node
        return node and (not self.namespace or pod.namespace in self.namespace)


def expected(rows: Rows, choice: Choice) -> set[tuple[str, ...]]:
    """The values of `rows.labels` of every series."""
    return {tuple(found[label] for label in rows.labels) for found in KINDS[rows.of](choice)}


def _gpus(test: Callable[[Gpu], bool]) -> Callable[[Choice], Iterator[Labels]]:
    """GPUs that report and pass a test."""

    def found(choice: Choice) -> Iterator[Labels]:
        for gpu in GPUS:
            if choice.takes(gpu) and gpu.node.ready and test(gpu):
                yield _of_gpu(gpu)

    return found


def _held(test: Callable[[Gpu, Pod], bool]) -> Callable[[Choice], Iterator[Labels]]:
    """GPUs that report, are held by a pod, and pass a test."""

    def found(choice: Choice) -> Iterator[Labels]:
        for gpu in GPUS:
            pod = gpu.pod
            if pod is None or not (choice.takes(gpu) and choice.takes_pod(pod)):
                continue
            if gpu.node.ready and test(gpu, pod):
                yield _of_gpu(gpu) | _of_pod(pod)

    return found


def _pods(test: Callable[[Pod], bool]) -> Callable[[Choice], Iterator[Labels]]:
    def found(choice: Choice) -> Iterator[Labels]:
        return (_of_pod(pod) for pod in PODS if choice.takes_pod(pod) and test(pod))

    return found


def _of_gpu(gpu: Gpu) -> Labels:
    identity = {"UUID": gpu.uuid, "modelName": gpu.node.model}
    return {"node": gpu.node.name, "gpu": str(gpu.index), **identity}


def _of_pod(pod: Pod) -> Labels:
    return {"namespace": pod.namespace, "pod": pod.name, "node": pod.node}


def _by_instance(
    whole: Callable[[Choice], Iterator[Labels]],
) -> Callable[[Choice], Iterator[Labels]]:
    """The MIG instances of such GPUs."""
    parts = {(gpu.node.name, str(gpu.index)): gpu.instances for gpu in GPUS if gpu.instances > 1}

    def found(choice: Choice) -> Iterator[Labels]:
        for labels in whole(choice):
            for number in range(parts.get((labels["node"], labels["gpu"]), 0)):
                yield labels | {"GPU_I_ID": str(number + 1), "GPU_I_PROFILE": MIG_PROFILE}

    return found


def _mig_offers(choice: Choice) -> Iterator[Labels]:
    offering = {node.name for node in NODES if node.instances}
    return (
        each | {"resource": MIG_RESOURCE} for each in _nodes(choice) if each["node"] in offering
    )


def _nodes(choice: Choice) -> Iterator[Labels]:
    return ({"node": n.name} for n in NODES if not choice.node or n.name in choice.node)


def _nodes_that(test: Callable[[Node], bool]) -> Callable[[Choice], Iterator[Labels]]:
    passed = {node.name for node in NODES if test(node)}
    return lambda choice: (found for found in _nodes(choice) if found["node"] in passed)


def _waiting(choice: Choice) -> Iterator[Labels]:
    """Pods without a node. The selected node does not matter."""
    return _pods(lambda pod: not pod.node)(Choice(namespace=choice.namespace))


KINDS: dict[str, Callable[[Choice], Iterator[Labels]]] = {
    "selection": lambda choice: iter([{}]),
    "GPU that reports": _gpus(lambda gpu: True),
    "MIG instance that reports": _by_instance(_gpus(lambda gpu: True)),
    "pod with a MIG instance that reports": _by_instance(_held(lambda gpu, pod: True)),
    "MIG resource that a node offers": _mig_offers,
    "GPU with profiling counters": _gpus(lambda gpu: gpu.node.profiled),
    "GPU with NVLink that reports": _gpus(lambda gpu: gpu.node.nvlink),
    "GPU that can remap rows": _gpus(lambda gpu: gpu.node.remaps),
    "GPU with an XID": _gpus(lambda gpu: gpu.xid > 0),
    "GPU without spare rows": _gpus(lambda gpu: gpu.remap_failed),
    "GPU that works without a pod": _gpus(lambda gpu: gpu.unclaimed),
    "GPU that a pod holds idle": _held(lambda gpu, pod: not pod.busy),
    "model of a GPU that reports": _gpus(lambda gpu: True),
    "node that reports": _gpus(lambda gpu: True),
    "node that has reported": _nodes,
    "node whose exporter is a pod": _nodes_that(lambda n: n.ready and n.has_exporter_pod),
    "node with InfiniBand that reports": _gpus(lambda gpu: gpu.node.infiniband),
    "node with GPUs": _nodes,
    "node whose GPUs pods hold": _pods(lambda pod: bool(pod.gpus)),
    "node that is not ready": _nodes_that(lambda node: not node.ready),
    "node that takes pods": _nodes_that(lambda node: node.ready and not node.cordoned),
    "node with unhealthy GPUs": _nodes_that(lambda node: node.allocatable < 8),
    "namespace that holds GPUs": _pods(lambda pod: bool(pod.gpus)),
    "namespace with a GPU that reports": _held(lambda gpu, pod: True),
    "pod that holds GPUs": _pods(lambda pod: bool(pod.gpus)),
    "pod with a GPU that reports": _held(lambda gpu, pod: True),
    "pod with a GPU that reports, per GPU": _held(lambda gpu, pod: True),
    "pod with profiling counters": _held(lambda gpu, pod: gpu.node.profiled),
    "pod that waits for GPUs": _waiting,
}
