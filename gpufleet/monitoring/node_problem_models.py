"""Types of node_problems.yaml, which explains its fields."""

from __future__ import annotations

from datetime import date

from gpufleet.core.entries import Entry, Sourced, entry_loader
from gpufleet.helm.chart_models import Signs


class Fine(Entry):
    """Reason and message of a condition of a healthy node."""

    reason: str
    message: str


class Check(Entry):
    """A script and its arguments. `xids`: a class of xids.yaml, or "except" for no class."""

    reason: str
    script: str
    arguments: tuple[str, ...] = ()
    xids: str | None = None


class NodeCondition(Check, Sourced):
    """A condition of the node. `held`: its script gets the seconds that a log line counts."""

    type: str
    held: bool = False
    fine: Fine


class NodeProblems(Sourced):
    """node_problems.yaml; `interval`, `timeout` and `hold` are seconds."""

    as_of: date
    folder: str
    shell: str
    monitor: str
    interval: int
    timeout: int
    output: int
    host: str
    hold: int
    conditions: tuple[NodeCondition, ...]
    events: tuple[Check, ...]
    signs: Signs


load_node_problems = entry_loader(NodeProblems, "monitoring/node_problems")
