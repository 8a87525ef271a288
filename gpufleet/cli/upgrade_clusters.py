"""The clusters that a command on a run opens: those that its hosts still need."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpufleet.cli.upgrade_inventory import accesses_now
from gpufleet.cli.upgrade_record import places_of
from gpufleet.core.findings import Finding
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.upgrade.findings.nodes import ABORT_WAITS
from gpufleet.upgrade.models import names
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.clusters import NodeAt
from gpufleet.upgrade.operations.gone_nodes import GoneNodes
from gpufleet.upgrade.operations.opening import OtherCluster, by_access, open_nodes
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.states import ENDED, State

OVER = ENDED - {State.STUCK}  # a node that is left behind may have no mark yet

Clusters = dict[str, ClusterNodes]
Say = Callable[[str], None]


def opened(store: Store, order: Order, say: Say) -> tuple[Clusters, dict[str, Finding]]:
    """The clusters of a run's nodes, with their locks; and why an abort cannot finish hosts now.
    Clusters whose hosts have all ended are not needed. Raises ClusterProblem, and Stopped."""
    places = places_of(store, order.nodes)
    places_of(store, order.others)
    if store.request == "abort":
        return _for_abort(store, order, places, say)
    states = store.progress().states
    used = {place.access for name, place in places.items() if states[name] not in OVER}
    needed = {name: place for name, place in places.items() if place.access in used}
    return open_nodes(needed, store.name, say, order.others, _elsewhere(order)), {}


def _elsewhere(order: Order) -> Callable[[], list[KubeAccess]]:
    """Where a cluster may be that is not where it was."""
    return lambda: accesses_now(order.inventory)


def _for_abort(
    store: Store, order: Order, places: Mapping[str, NodeAt], say: Say
) -> tuple[Clusters, dict[str, Finding]]:
    """Each cluster by itself, those alone with nodes that are out of service. Nodes that are left
    behind may have their mark already: a cluster that has no others may be away."""
    progress = store.progress()
    left, work = set(progress.of(State.STUCK)), set(progress.at_work)
    found: Clusters = {}
    waits: dict[str, Finding] = {}
    for mine in by_access(places).values():
        if left.union(work).isdisjoint(mine):
            continue
        try:
            found |= open_nodes(mine, store.name, say, order.others, _elsewhere(order))
        except OtherCluster as error:
            found |= _gone(store.name, mine, error.findings[0].message)
            for name in filter(left.union(work).__contains__, mine):
                say(f"{name}: its node {mine[name].node} is not in the cluster any more")
            say(error.findings[0].message)
        except ClusterProblem as error:
            problem = error.findings[0]
            if waiting := [name for name in mine if name in work]:
                hosts = names(waiting)
                why = ABORT_WAITS(run=store.name, hosts=hosts, problem=problem.message)
                waits |= dict.fromkeys(waiting, why)
                say(f"{problem.code} {problem.message}\n  {problem.remedy}")
            else:
                say(f"nodes that are left behind may lack their mark: {problem.message}")
    return found, waits


def _gone(run: str, mine: Mapping[str, NodeAt], why: str) -> Clusters:
    nodes = {name: place.node for name, place in mine.items()}
    context = next(iter(mine.values())).context
    return dict.fromkeys(mine, GoneNodes(context, run, nodes, why))
