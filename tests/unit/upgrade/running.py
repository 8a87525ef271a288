"""A run of one host whose steps are in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from gpufleet.upgrade.models import HostView, Plan
from gpufleet.upgrade.operations.children import Children, Result
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.plan import make_plan
from gpufleet.upgrade.progress import Entry
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import Event, State

HOST = HostView("h", "a", "d", "k", "580.1", "580.1", "580.2")
DRAINED = (Event.PREPARED, Event.DRAIN_BEGAN, Event.DRAINED)
CHANGING = (*DRAINED, Event.CHANGE_BEGAN)
GOOD = Result(True)


class Steps:
    """Steps in memory; `before` happens while one is under way."""

    def __init__(self, result: Result = GOOD, **results: Result) -> None:
        """`results`: of some steps; `result`: of the others."""
        self.result, self.results = result, results
        self.asked: list[str] = []
        self.reboots: dict[str, str] = {}  # host -> node_reboot of its last step
        self.before: Callable[[], None] = lambda: None

    def step(
        self, step: str, hosts: Sequence[str], version: str, *, reboot: str
    ) -> dict[str, Result]:
        self.asked.append(step)
        self.reboots |= dict.fromkeys(hosts, reboot)
        self.before()
        return dict.fromkeys(hosts, self.results.get(step, self.result))

    def end(self) -> None:
        pass


def planned(*hosts: HostView, **settings: Any) -> Plan:
    return make_plan([HOST, *hosts], UpgradeSettings.model_validate(settings))


def running(
    plan: Plan,
    steps: Steps,
    *events: Event,
    clusters: Mapping[str, Any] = {},
    at: float = 1.0,
    **settings: Any,
) -> Run:
    """The run, of whose host the record has these events. `at`: their time."""
    store = Store.create(Order("prod.py", "/"), plan)
    for event in events:
        store.append(Entry(at, event.value, "h"))
    chosen = dict.fromkeys(plan.by_name, UpgradeSettings.model_validate(settings))
    nodes = cast("Mapping[str, ClusterNodes]", clusters)
    return Run(store, plan, chosen, cast(Children, steps), lambda line: None, nodes)


def state(run: Run) -> State:
    """Of the host."""
    return run.progress.states["h"]
