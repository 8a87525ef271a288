"""The clusters that a command on a run opens: those that its hosts still need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpufleet.cli.upgrade_inventory import accesses_now
from gpufleet.cli.upgrade_record import places_of
from gpufleet.core.findings import Finding
from gpufleet.core.visible import one_line
from gpufleet.kube.operations.access import ClusterProblem, KubeAccess
from gpufleet.upgrade.findings.nodes import ABORT_WAITS
from gpufleet.upgrade.models import names
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.clusters import NodeAt
from gpufleet.upgrade.operations.gone_nodes import GoneNodes
from gpufleet.upgrade.operations.moved import described
from gpufleet.upgrade.operations.opening import NotOpened, by_access, open_nodes
from gpufleet.upgrade.operations.store import Store
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.progress import Progress
from gpufleet.upgrade.states import ENDED, State

SHOWN = 20  # hosts in a question
OVER = ENDED - {State.STUCK}  # a node that is left behind may have no mark yet

Clusters = dict[str, ClusterNodes]
Say = Callable[[str], None]
IsGone = Callable[[str], bool]  # what the user says of a cluster


def never(question: str) -> bool:
    """The answer that no cluster is gone."""
    return False


def open_clusters(
    store: Store, order: Order, say: Say, is_gone: IsGone = never
) -> tuple[Clusters, dict[str, Finding]]:
    """The clusters of a run's nodes, with their locks; and why an abort cannot finish hosts now.
    `is_gone`: asked of each one that an abort does not reach. Clusters whose hosts have all ended
    are not needed. Raises ClusterProblem, and Stopped."""
    places = places_of(store, order.nodes)
    places_of(store, order.others)
    if store.request == "abort":
        return _for_abort(store, order, places, say, is_gone)
    progress = store.progress()
    used = {place.access for name, place in places.items() if _is_needed(progress, name)}
    needed = {name: place for name, place in places.items() if place.access in used}
    return open_nodes(needed, store.name, say, order.others, _elsewhere(order)), {}


def _is_needed(progress: Progress, name: str) -> bool:
    """Whether the run still needs the cluster of this host."""
    return progress.states[name] not in OVER


def _elsewhere(order: Order) -> Callable[[], list[KubeAccess]]:
    """Where a cluster may be that is not where it was."""
    return lambda: accesses_now(order.inventory)


def _for_abort(
    store: Store, order: Order, places: Mapping[str, NodeAt], say: Say, is_gone: IsGone
) -> tuple[Clusters, dict[str, Finding]]:
    """Each cluster by itself, those alone with nodes that are out of service. Nodes that are left
    behind may have their mark already: a cluster that has no others may be away."""
    progress = store.progress()
    left, work = set(progress.of(State.STUCK)), set(progress.at_work)
    found: Clusters = {}
    waits: dict[str, Finding] = {}
    for access, mine in by_access(places).items():
        if left.union(work).isdisjoint(mine):
            continue
        try:
            found |= open_nodes(mine, store.name, say, order.others, _elsewhere(order))
        except ClusterProblem as error:
            problem = error.findings[0]
            waiting = [name for name in mine if name in work]
            if _counts_as_gone(error, access, waiting, is_gone):
                found |= _gone(store.name, mine, problem.message)
                for name in filter(left.union(work).__contains__, mine):
                    say(f"{name}: its node {mine[name].node} is not in the cluster any more")
                say(problem.message)
            elif waiting:
                hosts = names(waiting)
                why = ABORT_WAITS(run=store.name, hosts=hosts, problem=problem.message)
                waits |= dict.fromkeys(waiting, why)
                say(f"{problem.code} {problem.message}\n  {problem.remedy}")
            else:
                say(f"nodes that are left behind may lack their mark: {problem.message}")
    return found, waits


def _counts_as_gone(
    error: ClusterProblem, access: KubeAccess, waiting: Sequence[str], is_gone: IsGone
) -> bool:
    """Whether a cluster that is not reached is gone by its user: nothing else proves it."""
    if not (waiting and isinstance(error, NotOpened)):
        return False
    cluster = f"the cluster of {described(access)} gone, with the nodes of {names(waiting, SHOWN)}"
    return is_gone(f"{one_line(error.findings[0].message)}\nIs {cluster}?")


def _gone(run: str, mine: Mapping[str, NodeAt], why: str) -> Clusters:
    nodes = {name: place.node for name, place in mine.items()}
    context = next(iter(mine.values())).context
    return dict.fromkeys(mine, GoneNodes(context, run, nodes, why))
