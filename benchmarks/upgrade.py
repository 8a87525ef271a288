"""`gpufleet upgrade` on a simulated fleet: planning, evictions, and the memory of the controller.

The control plane is real, and kwok acts as the kubelet of every node. gpufleet's code plans and
evicts in a separate process (benchmarks/draining.py).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import simulated
from benchmarks.timing import timed
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.kube.operations.api import ClusterApi
from gpufleet_sandbox.cluster import Cluster

KUBERNETES = "1.36"
NODES, PODS = 1500, 11_683  # the fleet of NVIDIA's measurement of NVSentinel


@dataclass(frozen=True, slots=True)
class Drained:
    """`nodes` in all; `pods` were on the `drained` ones. Seconds: `plan` for all nodes; `prepare`,
    `evict` and `cpu` for the drained ones. `memory` in MiB; `broken`: looks at which a budget was
    not met, of `looks`; `left`: pods that are still on drained nodes."""

    kubernetes: str
    nodes: int
    drained: int
    pods: int
    plan: float
    prepare: float
    evict: float
    cpu: float
    memory: float
    looks: int
    broken: int
    left: int

    @property
    def rate(self) -> float:
        """Pods a second."""
        return self.pods / self.evict


def measure(
    name: str, work: Path, progress: Callable[[str], None], nodes: int = NODES, pods: int = PODS
) -> Drained:
    """Drain half of the nodes of a new control plane, on which all pods are."""
    if left := Cluster.find(name):
        left.down()
    drained = max(nodes // 2, 1)
    cluster = Cluster.up(name, KUBERNETES, nodes=0, progress=progress)
    api = ClusterApi(KubeAccess(str(cluster.kubeconfig)))
    try:
        simulated.add_nodes(api, simulated.names(nodes)[:drained], cluster.version)
        progress(f"{drained} nodes")
        simulated.add_pods(api, pods, drained * simulated.GPUS, progress)
        simulated.add_nodes(api, simulated.names(nodes)[drained:], cluster.version)
        progress(f"{nodes} nodes; planning and draining")
        job, answer = work / "draining.json", work / "drained.json"
        job.write_text(
            json.dumps(
                {
                    "kubeconfig": str(cluster.kubeconfig),
                    "nodes": simulated.names(nodes),
                    "drained": drained,
                    "records": str(work / "records"),
                    "answer": str(answer),
                }
            )
        )
        words = [sys.executable, "-m", "benchmarks.draining"]
        with simulated.BudgetWatch(api) as watch:
            timed(words, log=work / "draining.log", stdin=job)
        found = json.loads(answer.read_text())
        there = simulated.pods_on(api, simulated.names(nodes)[:drained])
        progress(f"{pods} pods evicted in {found['evict']:.0f} s")
        return Drained(
            cluster.version, nodes, drained, pods, **found,
            looks=watch.looks, broken=watch.broken, left=there,
        )  # fmt: skip
    finally:
        api.close()
        cluster.down()
