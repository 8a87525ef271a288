"""A fleet of 8 nodes with 8 GPUs each, as Prometheus sees it. It is the same in every run.

The nodes differ as follows:

- gpu-1, gpu-2   dcgm-exporter 4.8.3 or newer (`hostname`), pods as `exported_pod`
- gpu-1          its exporter runs in a pod with an arbitrary name
- gpu-2          GPU 3 had XID 79 ten minutes ago; GPU 6 has no spare rows
- gpu-3          down for the last twenty minutes: no exporter series, its pod still exists
- gpu-4          a pod holds GPU 0 and is idle; GPU 7 is busy without a pod
- gpu-5          a model without profiling counters, NVLink and row remapping, `Hostname`
- gpu-6          `Hostname`; a cordoned node; GPU 7 is in MIG mode with two instances
- gpu-7          honorLabels: the workload's labels are `namespace` and `pod`, and a GPU without a
                 workload has the exporter's own
- gpu-8          an exporter outside of pods, `node` set by the scrape configuration; its GPUs are
idle, GPU 7 is unhealthy, the node offers 7

A second cluster has the same nodes and pods; it was scraped for the last forty minutes only.
"""

from __future__ import annotations

from dataclasses import dataclass

BEGIN = 1_767_225_600  # 2026-01-01T00:00:00Z, the start of a block of Prometheus
MINUTES = 115  # within one block of two hours
STEP = 60  # seconds between two scrapes
END = BEGIN + MINUTES * 60
CLUSTER, OTHER_CLUSTER = "alpha", "beta"
OTHER_FOR = 40 * 60  # seconds before the end
MIG_PROFILE, MIG_RESOURCE = "3g.40gb", "nvidia_com_mig_3g_40gb"
DOWN_FOR, XID_FOR = 20 * 60, 10 * 60  # seconds before the end


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
    def parts(self) -> int:
        """MIG devices that it asks for."""
        return int(self.name == "slice-0")

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
    def instances(self) -> int:
        """MIG devices that it offers beside its GPUs."""
        return 2 if self.name == "gpu-6" else 0

    @property
    def profiled(self) -> bool:
        return self.model != "Tesla P40"

    @property
    def infiniband(self) -> bool:
        return self.profiled

    @property
    def nvlink(self) -> bool:
        return self.profiled

    @property
    def has_exporter_pod(self) -> bool:
        """Whether its exporter is a pod of a usual name."""
        return not self.labelled and self.name != "gpu-1"

    @property
    def remaps(self) -> bool:
        """Whether its GPUs can remap rows of their memory."""
        return self.profiled


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
        """The number of MIG instances of the GPU: 1 if MIG is off."""
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
    Node("gpu-5", "Hostname", "Tesla P40"),
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
