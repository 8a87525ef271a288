"""A plan and a run as text for a terminal: hosts and clusters choose parts of each line. Pure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpufleet.core.names import counted
from gpufleet.core.progress import Active
from gpufleet.core.progress import Progress as Shown
from gpufleet.core.visible import one_line
from gpufleet.upgrade.models import Plan, names
from gpufleet.upgrade.progress import Progress
from gpufleet.upgrade.states import BAD, OUT_OF_SERVICE, UNTOUCHED, State

SHOWN = 10  # hosts of a wave
SCHEMA = 1  # of status.schema.json
NO_NODES: Mapping[str, str] = {}


def plan_text(
    plan: Plan,
    work: Iterable[tuple[str, Sequence[str]]] = (),
    nodes: Mapping[str, str] = NO_NODES,
    ending: Iterable[tuple[str, Sequence[str]]] = (),
) -> str:
    """Groups, waves, hosts that are left out. `work`: what runs on the GPUs, by host; `nodes`: the
    names of the hosts' nodes; `ending`: pods that the drain of a host evicts and that do not come
    back."""
    left = [f"left out: {each.name}: {each.reason}" for each in plan.left_out]
    if not plan.hosts:
        return "\n".join(map(one_line, ["No host to change.", *left]))
    lines = [f"{counted(len(plan.hosts), 'host')} in {counted(len(plan.groups), 'group')}:"]
    for group in plan.groups:
        members = [host for host in plan.hosts if host.group == group]
        moves = Counter(f"{host.before} -> {host.target}" for host in members)
        lines.append(f"  {group}: {', '.join(f'{n} x {m}' for m, n in moves.items())}")
    for number, wave in enumerate(plan.waves, 1):
        canaries = "canary" if len(wave.hosts) == 1 else "canaries"
        word = canaries if wave.canary else f"wave of {len(wave.hosts)}"
        lines.append(f"{number}. {word}: {names(wave.hosts, SHOWN)}")
    lines += _limits(plan)
    busy = [(name, found) for name, found in work if found and name in plan.by_name]
    lines += [f"waits for GPU work on {name}: {names(list(found), 3)}" for name, found in busy]
    for name, found in ending:
        shown = names(list(found), 3)
        lines.append(f"evicts from {name} what its controller may not replace: {shown}")
    lines += [f"node: {host} -> {node}" for host, node in nodes.items() if host != node]
    return "\n".join(map(one_line, [*lines, *left]))


def _limits(plan: Plan) -> list[str]:
    limits = plan.limits
    failed = counted(limits.max_failed, "failed host")
    window = f"; window {limits.window} {limits.window_zone}" if limits.window else ""
    soaks = max(len(plan.waves) - 1, 0) * limits.soak
    return [
        f"at most {limits.max_unavailable} out of service; soak {limits.soak} s ({soaks} s in "
        f"all); stops at {failed}, {limits.max_failed_in_a_row} in a "
        f"row{window}"
    ]


def shown_progress(progress: Progress, begun: float, now: float) -> Shown:
    """A run for lines that are redrawn while it goes on. `begun`: when its process did."""
    states = dict(progress.states)
    work = [name for name, state in states.items() if state in OUT_OF_SERVICE - BAD]
    counts = Counter(states.values())
    return Shown(
        "running",
        now - begun,
        len(states),
        tuple(
            Active(name, states[name].value, max(now - progress.since.get(name, now), 0))
            for name in work
        ),
        waiting=counts[State.WAITING] + counts[State.READY],
        done=counts[State.DONE],
        unchanged=sum(counts[state] for state in UNTOUCHED),
        failed=sum(counts[state] for state in BAD),
    )


def status_dict(name: str, progress: Progress, inventory: str, state: str) -> dict[str, Any]:
    """A run for `status --json`; status.schema.json describes it."""
    return {
        "schema": SCHEMA,
        "run": name,
        "kind": progress.plan.kind,
        "subject": progress.plan.subject,
        "inventory": inventory,
        "state": state,
        "reason": progress.reason,
        "out_of_service": progress.out_of_service,
        "failures": progress.failures,
        "hosts": [
            {
                "name": host.name,
                "group": host.group,
                "before": host.before,
                "target": host.target,
                "state": progress.states[host.name].value,
                "since": _utc(progress.since.get(host.name)),
                "reason": progress.reasons.get(host.name, ""),
            }
            for host in progress.plan.hosts
        ],
        "left_out": [
            {"name": each.name, "reason": each.reason, "blocked": each.blocked}
            for each in progress.plan.left_out
        ],
    }


def run_state(progress: Progress, *, locked: bool) -> str:
    """`running`, `interrupted` for one whose process is gone, or its last event."""
    if locked:
        return "running"
    return "interrupted" if progress.run in ("begun", "resumed") else progress.run


def status_text(name: str, progress: Progress, inventory: str, state: str) -> str:
    """A run as a table: counts, then every host that is not just waiting or done, then those that
    the run leaves out."""
    counts = Counter(progress.states.values())
    reason = f": {progress.reason}" if progress.reason else ""
    lines = [f"{progress.plan.kind} {name} of {inventory}: {state}{reason}"]
    lines.append(", ".join(f"{counts[each]} {each.value}" for each in State if counts[each]))
    rows = [
        (
            host.name,
            progress.states[host.name].value,
            _clock(progress.since.get(host.name)),
            progress.reasons.get(host.name, ""),
        )
        for host in progress.plan.hosts
        if progress.states[host.name] in OUT_OF_SERVICE or progress.reasons.get(host.name)
    ]
    if rows:
        table = [("HOST", "STATE", "SINCE", "REASON"), *rows]
        widths = [max(len(row[column]) for row in table) for column in range(3)]
        lines += ["  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in table]
    lines += [f"left out: {each.name}: {each.reason}" for each in progress.plan.left_out]
    return "\n".join(map(one_line, lines))


def _clock(moment: float | None) -> str:
    """In local time; a run may take days."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment)) if moment else ""


def _utc(moment: float | None) -> str | None:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment)) if moment else None
