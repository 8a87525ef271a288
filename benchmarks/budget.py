"""The budget of DESIGN: what was measured, judged. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cluster import ConvergedCluster
from benchmarks.converged import Converged
from benchmarks.first import First
from benchmarks.stats import Verdict, at_most, digits, times_faster

FLOOR_TIMES = 3
FLOOR_AT = 40
COMMANDS = 2
ANSIBLE_TIMES = 100
ANSIBLE_AT = 10
MEMORY = 200.0  # MiB
FIRST_TIMES = 1.15
CLUSTER_SECONDS = 5.0

PROFILE = (
    "py-spy record -- python -m pyinfra -y inventories/sandbox.py deploys/gpu_node.py: "
    "imports, operations that need not be, time in the plan functions"
)


def verdicts(
    converged: Sequence[Converged],
    first: Sequence[First],
    clusters: Sequence[ConvergedCluster] = (),
) -> list[Verdict]:
    """Every line of the budget that these measurements can say something about."""
    lines = []
    for row in converged:
        if row.hosts == FLOOR_AT:
            lines.append(_floor(row))
            lines.append(_memory(row))
        lines.append(_commands(row))
        if row.hosts == ANSIBLE_AT and row.ansible:
            lines.append(_ansible(row))
    return lines + [_first(row) for row in first] + [_cluster(row) for row in clusters]


def _floor(row: Converged) -> Verdict:
    limit = FLOOR_TIMES * row.floor.middle + row.start.middle
    budget = f"converged, {row.hosts} hosts, within {FLOOR_TIMES}x the floor + interpreter start"
    return at_most(budget, row.ours.middle, limit, "s", f"Profile it: {PROFILE}.")


def _memory(row: Converged) -> Verdict:
    look = "tracemalloc in gpufleet/operations/node.py: what is kept of each host's facts."
    return at_most(f"memory at {row.hosts} hosts", row.memory, MEMORY, "MiB", look)


def _commands(row: Converged) -> Verdict:
    look = "journalctl -t sshd on a host, and pyinfra -vv: an operation reads facts of its own."
    budget = f"commands per host, {row.hosts} hosts"
    return at_most(budget, row.commands, COMMANDS, "commands", look)


def _ansible(row: Converged) -> Verdict:
    """Where even the floor is not that fast, the budget cannot be kept: that is then said."""
    assert row.ansible
    budget = f"converged, {row.hosts} hosts, at least {ANSIBLE_TIMES}x as fast as Ansible"
    floor = row.ansible.middle / row.floor.middle
    look = f"Profile it: {PROFILE}."
    if floor < ANSIBLE_TIMES:
        look = (
            f"The floor, which manages nothing, is {digits(floor)}x as fast; the start of the "
            f"interpreter alone takes {digits(row.start.middle)} s of our "
            f"{digits(row.ours.middle)} s."
        )
    return times_faster(budget, row.ansible.middle, row.ours.middle, ANSIBLE_TIMES, look)


def _first(row: First) -> Verdict:
    name = f"first installation, {row.hosts} hosts, {row.driver} driver"
    budget = f"{name}, within {FIRST_TIMES}x apt on the slowest"
    look = "The table of its operations above says where the time goes."
    return at_most(budget, row.ours.middle, FIRST_TIMES * row.manager.middle, "s", look)


def _cluster(row: ConvergedCluster) -> Verdict:
    budget = f"converged cluster, {row.nodes} nodes, within {CLUSTER_SECONDS:.0f} s"
    look = f"Profile it: {PROFILE}."
    return at_most(budget, row.ours.middle, CLUSTER_SECONDS, "s", look)
