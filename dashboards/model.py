"""The model of a dashboard before Grafana's JSON: panels, queries and the rows they return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["stat", "series", "stacked", "table", "bars"]


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a query: one series for each `of`, distinguished by `labels`.

    `quiet`: the query returns no series for a healthy fleet.
    """

    of: str
    labels: tuple[str, ...] = ()
    quiet: bool = False


ONE = Rows("selection")
GPU = Rows("GPU that reports", ("node", "gpu"))
PROFILED = Rows("GPU with profiling counters", ("node", "gpu"))
NVLINKED = Rows("GPU with NVLink that reports", ("node", "gpu"))
REMAPPING = Rows("GPU that can remap rows", ("node", "gpu"))
GPU_IDENTITY = Rows("GPU that reports", ("node", "gpu", "UUID", "modelName"))
XID = Rows("GPU with an XID", ("node", "gpu", "UUID", "modelName"), quiet=True)
REMAP_FAILED = Rows("GPU without spare rows", ("node", "gpu", "UUID", "modelName"), quiet=True)
UNCLAIMED = Rows("GPU that works without a pod", ("node", "gpu", "UUID", "modelName"), quiet=True)
IDLE = Rows("GPU that a pod holds idle", ("namespace", "pod", "node", "gpu"), quiet=True)
INSTANCE = Rows("MIG instance that reports", ("node", "gpu", "GPU_I_ID", "GPU_I_PROFILE"))
POD_ON_INSTANCE = Rows(
    "pod with a MIG instance that reports",
    ("node", "gpu", "GPU_I_ID", "GPU_I_PROFILE", "namespace", "pod"),
)
MIG_DEVICES = Rows("MIG resource that a node offers", ("node", "resource"))
MODEL = Rows("model of a GPU that reports", ("modelName",))
REPORTING_NODE = Rows("node that reports", ("node",))
MEASURED_NODE = Rows("node that has reported", ("node",))
EXPORTER_NODE = Rows("node whose exporter is a pod", ("node",))
INFINIBAND_NODE = Rows("node with InfiniBand that reports", ("node",))
USABLE_NODE = Rows("node that takes pods", ("node",))
UNHEALTHY_NODE = Rows("node with unhealthy GPUs", ("node",), quiet=True)
NODE_WITH_PODS = Rows("node whose GPUs pods hold", ("node",))
NODE_DOWN = Rows("node that is not ready", ("node",), quiet=True)
NAMESPACE = Rows("namespace that holds GPUs", ("namespace",))
REPORTING_NAMESPACE = Rows("namespace with a GPU that reports", ("namespace",))
POD = Rows("pod that holds GPUs", ("namespace", "pod"))
REPORTING_POD = Rows("pod with a GPU that reports", ("namespace", "pod"))
PROFILED_POD = Rows("pod with profiling counters", ("namespace", "pod"))
POD_ON_NODE = Rows("pod that holds GPUs", ("node", "namespace", "pod"))
POD_ON_GPU = Rows("pod with a GPU that reports, per GPU", ("node", "gpu", "namespace", "pod"))
WAITING_POD = Rows("pod that waits for GPUs", ("namespace", "pod"), quiet=True)


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression. `legend`: the name of a series, with labels in double braces."""

    expression: str
    rows: Rows
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `width` of 24 columns; `about` is shown behind its (i).

    `steps`: values from which on a number turns yellow, and red. `alerts`: those that say what is
    wrong with it; the description has the doctor's commands for them.
    """

    title: str
    kind: Kind
    about: str
    queries: tuple[Query, ...]
    unit: str = "short"
    width: int = 8
    steps: tuple[float, float] | None = None
    alerts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A dashboard. `name`: of its file and, with our prefix, its uid in Grafana.

    `variables`: of cluster, node, gpu, namespace, those that it offers; the data source always.
    """

    name: str
    title: str
    about: str
    variables: tuple[str, ...]
    rows: tuple[Row, ...]
