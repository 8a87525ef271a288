"""The value of every series that the dashboards' queries return, worked out from the fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from tests.monitoring.fleet import (
    BEGIN,
    END,
    GPUS,
    MIG_PROFILE,
    MIG_RESOURCE,
    NODES,
    PODS,
    Gpu,
    Node,
    Pod,
)
from tests.monitoring.fleet_metrics import readings
from tests.monitoring.fleet_rows import Choice

Answer = Callable[[Choice], dict[tuple[str, ...], float]]
Key = tuple[str, ...]


def reading(field: str) -> Callable[[Gpu], float]:
    """A field of a GPU at the end."""

    def value(gpu: Gpu) -> float:
        start, growth = dict(readings(gpu))[field]
        return start + growth * (END - BEGIN)

    return value


def grouped(
    items: Iterable[tuple[Key, float]], how: Callable[[list[float]], float]
) -> dict[Key, float]:
    found: defaultdict[Key, list[float]] = defaultdict(list)
    for key, value in items:
        found[key].append(value)
    return {key: how(values) for key, values in found.items()}


def gpus(choice: Choice) -> list[Gpu]:
    """The selected GPUs that report metrics."""
    return [gpu for gpu in GPUS if gpu.node.ready and choice.takes(gpu)]


def held(choice: Choice) -> list[tuple[Gpu, Pod]]:
    """The selected GPUs that report metrics and belong to a pod, with that pod."""
    pairs = [(gpu, gpu.pod) for gpu in gpus(choice) if gpu.pod]
    return [(gpu, pod) for gpu, pod in pairs if choice.takes_pod(pod)]


def nodes(choice: Choice) -> list[Node]:
    return [node for node in NODES if not choice.node or node.name in choice.node]


def pods(choice: Choice) -> list[Pod]:
    """The selected pods that hold GPUs."""
    return [pod for pod in PODS if pod.gpus and choice.takes_pod(pod)]


def waiting(choice: Choice) -> list[Pod]:
    wanted = Choice(namespace=choice.namespace)
    return [pod for pod in PODS if not pod.node and wanted.takes_pod(pod)]


def free(choice: Choice) -> dict[Key, float]:
    """By node."""
    usable = [node for node in nodes(choice) if node.ready and not node.cordoned]
    taken = {node.name: sum(len(p.gpus) for p in PODS if p.node == node.name) for node in usable}
    return {(node.name,): node.allocatable - taken[node.name] for node in usable}


def number(value: Callable[[Choice], float]) -> Answer:
    """A query that returns one number."""
    return lambda choice: {(): value(choice)}


def total(values: Callable[[Choice], Iterable[float]]) -> Answer:
    return number(lambda choice: sum(values(choice)))


def ratio(over: Callable[[Choice], float], under: Callable[[Choice], float]) -> Answer:
    return number(lambda choice: over(choice) / under(choice) if under(choice) else 0)


def by_gpu(
    value: Callable[[Gpu], float],
    test: Callable[[Gpu], Any] = lambda gpu: True,
    identity: bool = False,
) -> Answer:
    """The rows of GPUs that pass a test. `identity`: include UUID and model."""

    def key(gpu: Gpu) -> Key:
        more = (gpu.uuid, gpu.node.model) if identity else ()
        return (gpu.node.name, str(gpu.index), *more)

    return lambda choice: {key(gpu): value(gpu) for gpu in gpus(choice) if test(gpu)}


def by_instance(value: Callable[[Gpu, int], float], pods: bool = False) -> Answer:
    """The rows of MIG instances. `pods`: of those that a pod holds, with the pod."""

    def found(choice: Choice) -> dict[Key, float]:
        divided = [gpu for gpu in gpus(choice) if gpu.instances > 1]
        return {
            (gpu.node.name, str(gpu.index), str(number + 1), MIG_PROFILE)
            + ((gpu.pod.namespace, gpu.pod.name) if pods and gpu.pod else ()): value(gpu, number)
            for gpu in divided
            if not pods or (gpu.pod and choice.takes_pod(gpu.pod))
            for number in range(gpu.instances)
        }

    return found


def first_instance(value: Callable[[Gpu], float]) -> Callable[[Gpu, int], float]:
    """What the instance with all the work has of a mean over the instances."""
    return lambda gpu, number: value(gpu) * gpu.instances * (number == 0)


def free_instances(choice: Choice) -> dict[Key, float]:
    taken = {node.name: sum(p.parts for p in PODS if p.node == node.name) for node in NODES}
    offering = [node for node in nodes(choice) if node.instances]
    return {(node.name, MIG_RESOURCE): node.instances - taken[node.name] for node in offering}


def by_node(value: Callable[[Gpu], float], how: Callable[[list[float]], float]) -> Answer:
    return lambda choice: grouped((((g.node.name,), value(g)) for g in gpus(choice)), how)


def by_pod(
    value: Callable[[Gpu], float],
    how: Callable[[list[float]], float],
    test: Callable[[Gpu], Any] = lambda gpu: True,
) -> Answer:
    def found(choice: Choice) -> dict[Key, float]:
        pairs = [(gpu, pod) for gpu, pod in held(choice) if test(gpu)]
        return grouped((((pod.namespace, pod.name), value(gpu)) for gpu, pod in pairs), how)

    return found


def by_namespace(value: Callable[[Gpu], float], how: Callable[[list[float]], float]) -> Answer:
    return lambda choice: grouped(
        (((pod.namespace,), value(gpu)) for gpu, pod in held(choice)), how
    )


def requested(key: Callable[[Pod], Key], found: Callable[[Choice], list[Pod]] = pods) -> Answer:
    """Requests of pods, added up by a key."""
    return lambda choice: grouped(((key(pod), pod.requests) for pod in found(choice)), sum)


def installed(choice: Choice) -> float:
    return 8 * len(nodes(choice))


def usable(choice: Choice) -> float:
    return sum(n.allocatable for n in nodes(choice) if n.ready and not n.cordoned)


def taken(choice: Choice) -> float:
    return sum(len(pod.gpus) for pod in pods(choice))


def at_work(choice: Choice) -> float:
    return sum(gpu.busy > 0.05 for gpu in gpus(choice))


def busy(gpu: Gpu) -> float:
    return gpu.busy


def profiled(gpu: Gpu) -> bool:
    return gpu.node.profiled


def memory_share(found: Iterable[Gpu]) -> float:
    used, left = reading("DCGM_FI_DEV_FB_USED"), reading("DCGM_FI_DEV_FB_FREE")
    chosen = list(found)
    return sum(map(used, chosen)) / sum(used(gpu) + left(gpu) for gpu in chosen)
