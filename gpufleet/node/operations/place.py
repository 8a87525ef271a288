"""The place of a host among those of its run."""

from __future__ import annotations

from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from pyinfra.api import Host, State
from pyinfra.api.exceptions import NoGroupError

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.facts.model import NodeFacts
from gpufleet.node.plan import NodePlan
from gpufleet.node.settings import NodeSettings
from gpufleet.role.listing import node_roles
from gpufleet.role.place import Place, Twin


@dataclass(slots=True)
class _Seen:
    """What was read of the hosts of a run so far; they are read in no order."""

    firsts: dict[tuple[str, str], str] = field(default_factory=dict)  # identity -> first host
    plans: dict[str, tuple[NodePlan, NodeSettings, NodeFacts]] = field(default_factory=dict)


_SEEN: WeakKeyDictionary[State, _Seen] = WeakKeyDictionary()


def place_of(state: State, host: Host, facts: NodeFacts) -> Place:
    """Groups, control planes, and hosts read before that have this one's identity."""
    planes = _planes(state)
    seen = _SEEN.setdefault(state, _Seen())
    values = [("machine id", facts.machine_id), ("host name", facts.cluster_host.name.lower())]
    values += [("MAC address", mac) for mac in facts.cluster_host.macs]
    firsts = [(key, seen.firsts.setdefault(key, host.name)) for key in values if key[1]]
    twins = tuple(Twin(name, *key) for key, name in firsts if name != host.name)
    first = planes[0] if planes else host
    return Place(
        groups=frozenset(host.groups),
        control_planes=tuple(each.name for each in planes),
        plane=first.data.dict() if planes else {},
        plane_runs=state.is_host_in_limit(first),
        twins=twins,
    )


def beside_plane(
    state: State, host: Host, plan: NodePlan, settings: NodeSettings, facts: NodeFacts
) -> dict[str, list[Finding]]:
    """Findings by host that need the facts of the first control plane too: of this host, or, once
    that one is read, of those read before it."""
    planes = _planes(state)
    if not planes:
        return {}
    seen = _SEEN.setdefault(state, _Seen()).plans
    seen[host.name] = plan, settings, facts
    first = planes[0].name
    if first not in seen:
        return {}
    names = seen if host.name == first else (host.name,)
    plane = seen[first][2]
    return {name: _beside(*seen[name], plane) for name in names if name != first}


def _beside(
    plan: NodePlan, settings: NodeSettings, facts: NodeFacts, plane: NodeFacts
) -> list[Finding]:
    return [
        each
        for role in node_roles()
        for each in role.beside(plan.of(role), settings.of(role), facts, plane)
    ]


def _planes(state: State) -> list[Host]:
    try:
        return list(state.inventory.get_group(CONTROL_PLANE))
    except NoGroupError:
        return []
