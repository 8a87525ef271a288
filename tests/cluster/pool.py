"""Control planes that are started once per worker and reset for every test."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes import client

from gpufleet_sandbox.cluster import Cluster
from gpufleet_sandbox.cluster.nodes import GPU_LABELS
from gpufleet_sandbox.cluster.snapshot import Objects
from gpufleet_sandbox.waiting import wait_until
from tests.naming import RUN

SECONDS = 900.0
DISCOVERED = Path.home() / ".kube" / "cache" / "discovery"  # helm's cache of a server's APIs


@dataclass(frozen=True, slots=True)
class Fresh:
    """A cluster, and its objects at the time when its controllers were first idle."""

    cluster: Cluster
    objects: Objects
    groups: frozenset[str]  # of its API


@dataclass(slots=True)
class Pool:
    """One control plane per Kubernetes minor, for one worker of pytest-xdist."""

    worker: str
    running: dict[str, Fresh] = field(default_factory=dict)

    def bare(self, minor: str, *, labelled: bool = True) -> Cluster:
        """Three simulated nodes with eight GPUs each and nothing else; `labelled` as by NFD.

        Invalidates the cluster that was returned before. Tests that stop servers start their own.
        Raises TimeoutError if the reset does not finish, and SandboxError GF652 if one of the
        cluster's programs exits during it.
        """
        found = self.running.get(minor)
        if found is None or not found.cluster.alive:
            found = self.running[minor] = self._start(minor)
        else:
            found.cluster.restore(found.objects)
            shutil.rmtree(DISCOVERED / _place(found.cluster), ignore_errors=True)
            _wait(lambda: groups(found.cluster) == found.groups, "other groups of APIs")
        if not labelled:
            core: Any = client.CoreV1Api(found.cluster.api)
            for node in found.cluster.ready_nodes():
                core.patch_node(node, {"metadata": {"labels": dict.fromkeys(GPU_LABELS)}})
        return found.cluster

    def end(self) -> None:
        for found in self.running.values():
            found.cluster.down()

    def _start(self, minor: str) -> Fresh:
        name = f"{RUN}-{minor}-{self.worker}"
        left = Cluster.find(name)
        if left:
            left.down()
        cluster = Cluster.up(name, minor, progress=print)
        core: Any = client.CoreV1Api(cluster.api)

        def settled() -> bool:
            """Every namespace has its default service account."""
            accounts = core.list_service_account_for_all_namespaces().items
            ready = {one.metadata.namespace for one in accounts if one.metadata.name == "default"}
            return ready == {one.metadata.name for one in core.list_namespace().items}

        _wait(settled, "a namespace without its service account")
        return Fresh(cluster, cluster.stable_objects(), groups(cluster))


def _wait(condition: Callable[[], bool], problem: str) -> None:
    """Wait for a condition; TimeoutError with the `problem` after SECONDS."""
    if not wait_until(condition, SECONDS):
        raise TimeoutError(f"after {SECONDS:g} s: {problem}")


def groups(cluster: Cluster) -> frozenset[str]:
    """The API groups that it serves."""
    found: Any = client.ApisApi(cluster.api).get_api_versions()
    return frozenset(group.name for group in found.groups)


def _place(cluster: Cluster) -> str:
    """The name of helm's cache folder for an API server."""
    host: str = cluster.api.configuration.host
    return host.removeprefix("https://").replace(":", "_")
