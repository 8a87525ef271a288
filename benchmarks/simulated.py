"""A simulated fleet at work: nodes by kwok, and pods of Deployments under budgets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.fleet import each
from benchmarks.timing import RunFailed
from gpufleet.kube.operations.api import ClusterApi
from gpufleet_sandbox.cluster import nodes
from gpufleet_sandbox.waiting import wait_until

GPUS = 8  # of a node
REPLICAS = 50  # of a Deployment
TEAM = 10  # Deployments of a namespace: controllers look through all pods of one at each change
GPU_SHARE = 3  # every third Deployment has pods with a GPU
UNAVAILABLE = "10%"  # that the budget of each Deployment allows
AT_ONCE = 8
READY_SECONDS, POD_SECONDS = 300.0, 0.25  # limits of waiting: for all nodes, and for each pod
LOOK = 5.0  # seconds between two looks at the budgets
NAMESPACES, DEPLOYMENTS = "/api/v1/namespaces", "/apis/apps/v1/deployments"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"


def names(count: int) -> list[str]:
    return nodes.names(count)


def machine(name: str) -> str:
    """The machine id of a node."""
    return name.rpartition("-")[2].zfill(32)


def add_nodes(api: ClusterApi, wanted: Sequence[str], version: str) -> None:
    """Create nodes and wait until they are Ready. RunFailed where they are not in time."""

    def create(name: str) -> None:
        body = nodes.node(name, gpus=GPUS, version=version)
        body["status"]["nodeInfo"]["machineID"] = machine(name)
        api.create("/api/v1/nodes", body)

    each(wanted, create, AT_ONCE)

    def ready() -> bool:
        found = {node["metadata"]["name"]: node for node in api.list("/api/v1/nodes")}
        return all(_is_ready(found[name]) for name in wanted)

    if not wait_until(ready, READY_SECONDS):
        raise RunFailed(f"some of {len(wanted)} simulated nodes are not Ready")


def sizes_of(count: int, gpus: int) -> list[tuple[int, bool]]:
    """The replicas of each Deployment, and whether they have a GPU each; as many as there are."""
    found: list[tuple[int, bool]] = []
    for number, first in enumerate(range(0, count, REPLICAS)):
        size = min(REPLICAS, count - first)
        with_gpu = number % GPU_SHARE == 0 and size <= gpus
        gpus -= size if with_gpu else 0
        found.append((size, with_gpu))
    return found


def add_pods(api: ClusterApi, count: int, gpus: int, progress: Callable[[str], None]) -> None:
    """Create Deployments with budgets, and wait until their pods are Ready and the budgets count
    them. RunFailed where they are not in time."""
    sizes = sizes_of(count, gpus)

    def create(number: int) -> None:
        name, team = f"work-{number + 1}", f"team-{number // TEAM + 1}"
        replicas, with_gpu = sizes[number]
        api.create(_of_team(DEPLOYMENTS, team), _deployment(name, replicas, gpu=with_gpu))
        api.create(_of_team(BUDGETS, team), _budget(name))

    for number in range(0, len(sizes), TEAM):
        api.create(NAMESPACES, {"metadata": {"name": f"team-{number // TEAM + 1}"}})
    each(range(len(sizes)), create, AT_ONCE)
    shown = time.monotonic()

    def ready() -> bool:
        nonlocal shown
        states = [each["status"] for each in api.list(DEPLOYMENTS)]
        done = sum(state.get("readyReplicas") or 0 for state in states)
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            progress(f"{done} of {count} pods are Ready")
        counted = sum((each.get("status") or {}).get("currentHealthy") or 0
                      for each in api.list(BUDGETS)) if done == count else 0  # fmt: skip
        return counted == count

    if not wait_until(ready, READY_SECONDS + count * POD_SECONDS):
        raise RunFailed(f"some of {count} pods are not Ready")


def pods_on(api: ClusterApi, wanted: Sequence[str]) -> int:
    """How many pods are on these nodes."""
    known = frozenset(wanted)
    return sum(pod["spec"].get("nodeName") in known for pod in api.list("/api/v1/pods"))


class BudgetWatch:
    """Looks at the budgets while others evict: how often, and how often one was not met."""

    def __init__(self, api: ClusterApi) -> None:
        self.api = api
        self.looks = self.broken = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> BudgetWatch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK):
            states = [each.get("status") or {} for each in self.api.list(BUDGETS)]
            self.looks += 1
            self.broken += any(s["currentHealthy"] < s["desiredHealthy"] for s in states)


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _of_team(path: str, team: str) -> str:
    """A kind's path in one namespace."""
    parent, _, kind = path.rpartition("/")
    return f"{parent}/namespaces/{team}/{kind}"


def _deployment(name: str, replicas: int, *, gpu: bool) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "example/none"}
    if gpu:
        container["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    selector = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def _budget(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"maxUnavailable": UNAVAILABLE, "selector": {"matchLabels": {"app": name}}},
    }
