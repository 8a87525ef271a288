"""Determines a host's place among the hosts of its run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from pyinfra.api import Host, State
from pyinfra.api.exceptions import NoGroupError

from gpufleet.core.findings import Finding
from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.facts.model import NodeFacts
from gpufleet.host.asking import frame_command, framed_answer, host_arguments
from gpufleet.host.shell import script_command
from gpufleet.host.sudo import run_on_host
from gpufleet.kube.operations.answering import kubernetes_at
from gpufleet.node.plan import NodePlan
from gpufleet.node.settings import NodeSettings
from gpufleet.role.listing import node_roles
from gpufleet.role.place import Place, PlaceQuestion, Twin


@dataclass(slots=True)
class _Seen:
    """The hosts of a run that were read so far, in any order."""

    firsts: dict[tuple[str, str], str] = field(default_factory=dict)  # identity -> first host
    plans: dict[str, tuple[NodePlan, NodeSettings, NodeFacts]] = field(default_factory=dict)


_SEEN: WeakKeyDictionary[State, _Seen] = WeakKeyDictionary()


def host_place(state: State, host: Host, facts: NodeFacts) -> Place:
    """Groups, control planes, and hosts read earlier that have the same identity as this one."""
    planes = _planes(state)
    seen = _SEEN.setdefault(state, _Seen())
    values = [("machine id", facts.machine_id), ("host name", facts.cluster_host.name.lower())]
    values += [("MAC address", mac) for mac in facts.cluster_host.macs]
    firsts = [(key, seen.firsts.setdefault(key, host.name)) for key in values if key[1]]
    twins = tuple(Twin(name, *key) for key, name in firsts if name != host.name)
    return Place(
        groups=frozenset(host.groups),
        control_planes=tuple(each.name for each in planes),
        position=planes.index(host) if host in planes else 0,
        plane=planes[0].data.dict() if planes else {},
        absent=frozenset(each.name for each in planes if not state.is_host_in_limit(each)),
        twins=twins,
    )


def place_in_run(state: State, host: Host, settings: NodeSettings, facts: NodeFacts) -> Place:
    """The host's place, with the answer to the question that one of its roles may have."""
    place = host_place(state, host, facts)
    asked = (role.question(settings.of(role), facts, place) for role in node_roles())
    question = next(filter(None, asked), None)  # only one role has a question
    return answer_question(state, host, place, question) if question else place


def answer_question(state: State, host: Host, place: Place, question: PlaceQuestion) -> Place:
    """The place with the answer to a question about other hosts."""
    others = [each for each in _planes(state) if each is not host] if question.file else []
    return replace(
        place,
        having=tuple(each.name for each in others if _has(state, each, question.file)),
        answering=kubernetes_at(question.server) if question.server else "",
    )


def beside_plane(
    state: State, host: Host, plan: NodePlan, settings: NodeSettings, facts: NodeFacts
) -> dict[str, list[Finding]]:
    """Findings by host that also need the facts of the first control plane: findings about this
    host, or, if it is that control plane, about the hosts read before it."""
    planes = _planes(state)
    if not planes:
        return {}
    seen = _SEEN.setdefault(state, _Seen()).plans
    seen[host.name] = plan, settings, facts
    first = planes[0].name
    if first not in seen:
        return {}
    plane, found = seen[first][2], {}
    for name in seen if host.name == first else (host.name,):
        if name != first:
            plan, settings, facts = seen[name]
            notes = (
                role.beside(plan.of(role), settings.of(role), facts, plane) for role in node_roles()
            )
            found[name] = [each for some in notes for each in some]
    return found


def _planes(state: State) -> list[Host]:
    try:
        return list(state.inventory.get_group(CONTROL_PLANE))
    except NoGroupError:
        return []


def _has(state: State, there: Host, path: str) -> bool:
    """True if a host of the run has a file; also False if the host cannot be asked."""
    if not (state.is_host_in_limit(there) and there.connected) or there in state.failed_hosts:
        return False
    command = frame_command(script_command("node/has_file", path))
    ok, output = run_on_host(there, command, **host_arguments(there))
    return ok and framed_answer(output.stdout_lines) == ["yes"]
