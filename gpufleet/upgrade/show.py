"""Shows a plan, a run and the states of hosts: as text for a terminal, as JSON, and as events on
nodes. Pure.

Parts of each line come from hosts and clusters.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpufleet.core.names import count_noun, group_by_thing, list_names, name_hosts
from gpufleet.core.progress import Active, RunProgress
from gpufleet.core.visible import one_line
from gpufleet.drain.nodes import EVENTS_NAMESPACE
from gpufleet.drain.pods import Leaving, unreplaced_pods
from gpufleet.host.upgrade_state import FAILING, OPEN, WORKING_PHASES, HostState, Phase
from gpufleet.upgrade.models import Plan

MAX_SHOWN_HOSTS = 10  # hosts of a wave
IN_STATUS = ("run", "kind", "subject", "before", "target", "group")
SCHEMA = 1  # of status.schema.json
RUN_GOES_ON = (
    "The run is not finished: the same command goes on with it, `gpufleet upgrade abort INVENTORY` "
    "ends it."
)
RELEASE_STUCK = (
    "Repair a stuck host with `gpufleet apply INVENTORY --limit HOST`, then return it with "
    "`gpufleet upgrade release INVENTORY --limit HOST`."
)
PREPARES = (
    "each host asks its repositories before its drain; without the target, it is left as it is"
)
NO_NODES: Mapping[str, str] = {}
CODE = re.compile(r"GF\d{3}\b", re.ASCII)  # of a finding, before its message
REASONS = {
    Phase.DRAINING: "GpufleetDrain",
    Phase.CHANGING: "GpufleetChange",
    Phase.RESTORING: "GpufleetRollBack",
    Phase.DONE: "GpufleetChanged",
    Phase.REVERTED: "GpufleetRolledBack",
    Phase.PASSED: "GpufleetPassed",
    Phase.STUCK: "GpufleetStuck",
}


def upgrade_plan_text(
    plan: Plan,
    work: Mapping[str, Sequence[str]],
    nodes: Mapping[str, str] = NO_NODES,
    leaving: Mapping[str, Leaving] | None = None,
    warnings: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Groups, waves and hosts that are left out. `work`: host -> work on its GPUs; `nodes`: host ->
    name of its node; `leaving`: host -> pods that its drain evicts or waits for; `warnings`: host
    -> warnings about its target."""
    left = [f"left out: {each.name}: {each.reason}" for each in plan.left_out]
    if not plan.hosts:
        return "\n".join(map(one_line, ["No host to change.", *left]))
    open_ = {name: state for name, state in plan.hosts.items() if state.unfinished}
    groups = dict.fromkeys(state.group for state in open_.values())
    lines = _finished(plan) if plan.resumed else []
    lines.append(f"{count_noun(len(open_), 'host')} in {count_noun(len(groups), 'group')}:")
    for group in groups:
        members = [state for state in open_.values() if state.group == group]
        moves = Counter(map(_move, members))
        changes = (f"{move} on {count_noun(hosts, 'host')}" for move, hosts in moves.items())
        lines.append(f"  {group}: {', '.join(changes)}")
    for number, every in enumerate(plan.waves, 1):
        hosts = [name for name in every if name in open_]
        if not hosts:
            continue
        canaries = "canary" if len(hosts) == 1 else "canaries"
        first = number == 1 and plan.kind == "upgrade"
        word = canaries if first else f"wave of {len(hosts)}"
        lines.append(f"{number}. {word}: {list_names(hosts, MAX_SHOWN_HOSTS)}")
    lines.append(_limits(plan))
    noted = ((name, each) for name in open_ for each in (warnings or {}).get(name, ()))
    lines += [f"warning: {name_hosts(on)}: {each}" for each, on in group_by_thing(noted).items()]
    asks = plan.kind == "upgrade" and plan.subject in ("driver", "toolkit") and not plan.resumed
    lines += [PREPARES] if asks else []
    busy = [(name, found) for name, found in work.items() if found and name in open_]
    lines += [f"waits for GPU work on {name}: {list_names(list(found), 3)}" for name, found in busy]
    lines += _pod_lines({n: pods for n, pods in (leaving or {}).items() if n in open_})
    lines += [f"node: {host} -> {node}" for host, node in nodes.items() if host != node]
    return "\n".join(map(one_line, [*lines, *left]))


def _pod_lines(leaving: Mapping[str, Leaving]) -> list[str]:
    """The pods that the drains wait for, and those that they evict for good."""
    lines = []
    for name, pods in leaving.items():
        if waited := [f"{pod}: {why}" for pod, why in pods.waited.items()]:
            lines.append(f"waits for pods on {name}: {list_names(waited, 3)}")
        if ends := unreplaced_pods(pods):
            shown = list_names(ends, 3)
            lines.append(f"evicts from {name} what its controller may not replace: {shown}")
    return lines


def _finished(plan: Plan) -> list[str]:
    """The head of a run that goes on, and the hosts that it has finished, by state."""
    lines = [f"Run {plan.run} is not finished: it goes on."]
    for phase in Phase:
        every = plan.hosts.items()
        names = [name for name, state in every if state.phase is phase and not state.unfinished]
        lines += [f"already {phase.value}: {list_names(names, MAX_SHOWN_HOSTS)}"] if names else []
    return lines


def _limits(plan: Plan) -> str:
    limits = plan.limits
    failed = count_noun(limits.max_failed, "failed host")
    window = f"; window {limits.window} {limits.window_zone}" if limits.window else ""
    soaks = (len(plan.waves) - 1) * limits.soak
    soak = f"soak {limits.soak} s ({soaks} s in all)" if soaks > 0 else "one wave, no soak"
    return (
        f"at most {limits.max_unavailable} out of service; {soak}; stops at {failed}, "
        f"{limits.max_failed_in_a_row} in a row{window}"
    )


def shown_progress(states: Mapping[str, HostState], begun: float, now: float) -> RunProgress:
    """The progress of a run. `begun`: start time of its process."""
    phases = [state.phase for state in states.values()]
    at_work = [(name, state) for name, state in states.items() if state.phase in WORKING_PHASES]
    return RunProgress(
        "running",
        now - begun,
        len(states),
        tuple(Active(name, s.phase.value, max(now - s.since, 0)) for name, s in at_work),
        waiting=sum(phase in OPEN for phase in phases),
        done=phases.count(Phase.DONE),
        unchanged=phases.count(Phase.PASSED),
        failed=sum(phase in FAILING - WORKING_PHASES for phase in phases),
    )


def ended_text(states: Mapping[str, HostState]) -> str:
    """The line of a process that is ended at once: the hosts that stay out of service, and how the
    run goes on."""
    out = [name for name, state in states.items() if state.out_of_service]
    shown = f"Left out of service: {name_hosts(out)}. " if out else ""
    return one_line(f"{shown}{RUN_GOES_ON}")


@dataclass(frozen=True, slots=True)
class Status:
    """The state that a host reports, or `problem`: why it could not be read."""

    name: str
    state: HostState | None = None
    holder: str = ""  # of its lock
    problem: str = ""


def status_dict(inventory: str, hosts: Iterable[Status]) -> dict[str, Any]:
    """The hosts for `status --json`; status.schema.json describes it."""
    rows = [_status_of(each) for each in hosts]
    return {"schema": SCHEMA, "inventory": inventory, "hosts": rows}


def _status_of(host: Status) -> dict[str, Any]:
    state = host.state
    return {
        "name": host.name,
        "state": state.phase.value if state else None,
        **{key: getattr(state, key, None) for key in IN_STATUS},
        "since": _utc(state.since) if state else None,
        "out_of_service": getattr(state, "out_of_service", None),
        "reason": state.why if state else host.problem,
        "locked_by": host.holder,
    }


def status_text(inventory: str, hosts: Sequence[Status]) -> str:
    """The hosts as a table, between the number of hosts in each state and the reasons."""
    counts = Counter(host.state.phase for host in hosts if host.state)
    total = ", ".join(f"{counts[each]} {each.value}" for each in Phase if counts[each])
    lines = [f"{inventory}: {total or 'no upgrade has been here'}"]
    if holders := {host.holder for host in hosts if host.holder}:
        lines.append(f"at work: {', '.join(sorted(holders))}")
    table = [("HOST", "STATE", "OUT", "CHANGE", "SINCE (UTC)")]
    for host in hosts:
        if state := host.state:
            out = "yes" if state.out_of_service else ""
            since = time.strftime("%Y-%m-%d %H:%M", time.gmtime(state.since))
            change = f"{state.subject} {_move(state)}"
            table.append((host.name, state.phase.value, out, change, since))
    if len(table) > 1:
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    reasons = ((host.name, host.state.why if host.state else host.problem) for host in hosts)
    lines += [f"{name}: {reason}" for name, reason in reasons if reason]
    return "\n".join(map(one_line, [*lines, *_ways_out(hosts)]))


def _ways_out(hosts: Sequence[Status]) -> list[str]:
    """The commands that end an interrupted run and that return stuck hosts."""
    states = [host.state for host in hosts if host.state]
    found = []
    if any(state.unfinished for state in states) and not any(host.holder for host in hosts):
        found.append(RUN_GOES_ON)
    if any(state.phase is Phase.STUCK for state in states):
        found.append(RELEASE_STUCK)
    return found


def text_without_run(hosts: Sequence[Status]) -> tuple[str, bool]:
    """The answer of `abort` if no host is in an unfinished run, and whether every host is known to
    be in service.

    One stuck host -> ("No unfinished run.\\nStuck: gpu-07. …", False)
    """
    stuck = [host.name for host in hosts if host.state and host.state.phase is Phase.STUCK]
    lines = [f"{host.name}: {host.problem}" for host in hosts if host.problem]
    lines.insert(0, "No unfinished run" + (" on the hosts that answered." if lines else "."))
    lines += [f"Stuck: {list_names(stuck, MAX_SHOWN_HOSTS)}. {RELEASE_STUCK}"] if stuck else []
    return "\n".join(map(one_line, lines)), len(lines) == 1


def _move(state: HostState) -> str:
    """The versions, such as "580.159.03 -> 595.91.07"; the target alone if they are the same."""
    before, target = state.before, state.target
    return f"{before} -> {target}" if before and before != target else target


def _utc(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def event_of(node: str, run: str, phase: Phase, why: str, now: float) -> dict[str, Any] | None:
    """The Event object on the node of a host, for `kubectl describe node` and `kubectl get events`,
    or None if the phase does not concern the node. `now`: seconds since 1970.

    Everyone who may read the namespace `default` can read it. So it has only the code of `why`, as
    the rest may quote command lines, pods of other namespaces or output of commands.
    """
    if phase not in REASONS:
        return None
    moment = _utc(now)
    code = CODE.match(why)
    shown = f" ({code.group()})" if code else ""
    more = "; `gpufleet upgrade status` has the reason" if why else ""
    return {
        "metadata": {"generateName": f"{node}.", "namespace": EVENTS_NAMESPACE},
        # the kubelet also uses the node's name as uid
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
        "reason": REASONS[phase],
        "message": f"run {run} of gpufleet upgrade: {phase.value}{shown}{more}",
        "type": "Warning" if phase in FAILING | {Phase.PASSED} else "Normal",
        "source": {"component": "gpufleet"},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
