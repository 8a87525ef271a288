"""The place of a host among those of its run."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pyinfra.api import Host, State
from pyinfra.api.exceptions import NoGroupError

from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.facts.model import NodeFacts
from gpufleet.role.place import Place, Twin

# identities seen in a run -> name of the first host that has them
_SEEN: WeakKeyDictionary[State, dict[tuple[str, str], str]] = WeakKeyDictionary()


def place_of(state: State, host: Host, facts: NodeFacts) -> Place:
    """Groups, control planes, and hosts read before that have this one's identity."""
    try:
        planes = state.inventory.get_group(CONTROL_PLANE)
    except NoGroupError:
        planes = []
    seen = _SEEN.setdefault(state, {})
    values = [("machine id", facts.machine_id)]
    values += [("MAC address", mac) for mac in facts.cluster_host.macs]
    firsts = [(key, seen.setdefault(key, host.name)) for key in values if key[1]]
    twins = tuple(Twin(name, *key) for key, name in firsts if name != host.name)
    first = planes[0] if planes else host
    return Place(
        groups=frozenset(host.groups),
        control_planes=tuple(each.name for each in planes),
        plane=first.data.dict() if planes else {},
        plane_runs=state.is_host_in_limit(first),
        twins=twins,
    )
