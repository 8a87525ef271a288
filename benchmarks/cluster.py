"""A converged cluster: deploys/gpu_cluster.py with nothing to do, on a real control plane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ours import PYINFRA, report_of, require
from benchmarks.stats import Summary
from benchmarks.timing import timed
from gpufleet_sandbox.cluster import Cluster
from tests.cluster.fake_charts import write_charts

KUBERNETES = "1.36"
NODES, GPUS = 8, 8
RUNS = 5
COMMAND = ("-y", "inventories/cluster.py", "deploys/gpu_cluster.py")


@dataclass(frozen=True, slots=True)
class ConvergedCluster:
    """`ours` in seconds of wall time; `first`: of the run that installed everything."""

    kubernetes: str
    nodes: int
    first: float
    ours: Summary


def measure(name: str, work: Path, progress: Callable[[str], None]) -> ConvergedCluster:
    """Install the stack on a bare control plane, then run it again and again."""
    left = Cluster.find(name)
    if left:
        left.down()
    cluster = Cluster.up(name, KUBERNETES, NODES, GPUS, progress=progress)
    try:
        charts = work / "charts"
        write_charts(charts)
        report = work / "cluster.json"
        env = {
            "GPUFLEET_CLUSTER": name,
            "GPUFLEET_CHARTS": str(charts),
            "GPUFLEET_REPORT": str(report),
        }
        log = work / "gpu_cluster.log"
        first = timed([PYINFRA, *COMMAND], log=log, env=env).wall
        progress(f"bare cluster: gpu_cluster {first:.1f} s")
        walls = []
        for number in range(RUNS):
            walls.append(timed([PYINFRA, *COMMAND], log=log, env=env).wall)
            require(report_of(report), changes=False)
            progress(f"cluster, round {number + 1} of {RUNS}: gpu_cluster {walls[-1]:.2f} s")
        return ConvergedCluster(cluster.version, NODES, first, Summary.of(walls))
    finally:
        cluster.down()
