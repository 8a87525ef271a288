"""Compare measurements with the budget of docs/explanation/benchmarks.md. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cluster import ConvergedCluster
from benchmarks.converged import Converged
from benchmarks.creation import Creation
from benchmarks.first import First
from benchmarks.many import Many
from benchmarks.stats import Verdict, at_least, at_most, growth
from benchmarks.upgrade import Drained
from benchmarks.upgrade_hosts import Own

FLOOR_TIMES = 1.3
FLOOR_AT = 40
STATUS_TIMES = 3.0
DOCTOR_TIMES = 1.5
PROLOG_SECONDS = 2.0
CPU_TIMES = 1.5
COMMANDS = 1
MEMORY = 200.0  # MiB
MEMORY_PER_HOST = 0.2  # MiB
REAL_TIMES = 1.0
OWN_SECONDS = 5.0
CLUSTER_SECONDS = 2.0
TYPED_TIMES = 1.3
AGAIN_TIMES = 3.0
UPGRADE_NODES, UPGRADE_PODS = 1500, 11_683
PLAN_SECONDS = 10.0
EVICTIONS = 25.0  # a second
EVICTION_SECONDS = 480.0
UPGRADE_MEMORY = 500.0  # MiB
IMITATION = "the sandbox's"  # compiles in a second

PROFILE = (
    "py-spy record -- python -m pyinfra -y inventories/sandbox.py deploys/gpu_node.py: "
    "imports, operations that need not be, time in the plan functions"
)


def verdicts(
    converged: Sequence[Converged],
    first: Sequence[First],
    clusters: Sequence[ConvergedCluster] = (),
    creations: Sequence[Creation] = (),
    upgrades: Sequence[Drained] = (),
    owns: Sequence[Own] = (),
    many: Sequence[Many] = (),
) -> list[Verdict]:
    """Every line of the budget that these measurements can say something about."""
    lines = [_commands(row) for row in converged]
    for row in converged:
        if row.hosts == FLOOR_AT:
            lines += [_floor(row), _status(row), _doctor(row), _prolog(row), _memory(row)]
    lines += _per_host(converged)
    for each in first:
        if each.driver != IMITATION:
            lines.append(_real(each))
        elif each.hosts == 1:
            lines.append(_own(each))
    lines += [_cluster(row) for row in clusters]
    lines += [verdict for row in creations for verdict in _creation(row)]
    lines += [verdict for row in upgrades for verdict in _upgrade(row)]
    lines += [_own_part(row) for row in owns]
    return lines + [_many(row) for row in many]


def _commands(row: Converged) -> Verdict:
    look = "journalctl -t sshd on a host, and pyinfra -vv: an operation reads facts of its own."
    budget = f"commands per host, hosts: {row.hosts}"
    return at_most(budget, row.commands, COMMANDS, "commands", look)


def _floor(row: Converged) -> Verdict:
    limit = FLOOR_TIMES * row.floor.middle + row.start.middle
    budget = f"converged, {row.hosts} hosts, within {FLOOR_TIMES}x the floor + interpreter start"
    return at_most(budget, row.ours.middle, limit, "s", f"Profile it: {PROFILE}.")


def _status(row: Converged) -> Verdict:
    budget = f"status, {row.hosts} hosts, within {STATUS_TIMES:.0f}x the floor"
    limit = STATUS_TIMES * row.floor.middle
    return at_most(budget, row.status.middle, limit, "s", f"Profile it: {PROFILE}.")


def _doctor(row: Converged) -> Verdict:
    budget = f"doctor, {row.hosts} hosts, within {DOCTOR_TIMES}x its floor + interpreter start"
    limit = DOCTOR_TIMES * row.doctor_floor.middle + row.start.middle
    return at_most(budget, row.doctor.middle, limit, "s", f"Profile it: {PROFILE}.")


def _prolog(row: Converged) -> Verdict:
    look = "python -X importtime: what the prolog loads and does not use."
    return at_most("prolog, busy machine", row.prolog.middle, PROLOG_SECONDS, "s", look)


def _many(row: Many) -> Verdict:
    budget = f"status, {row.names} names, within {STATUS_TIMES:.0f}x the floor"
    limit = STATUS_TIMES * row.floor.middle
    return at_most(budget, row.status.middle, limit, "s", f"Profile it: {PROFILE}.")


def _memory(row: Converged) -> Verdict:
    look = "tracemalloc in gpufleet/node/operations/node.py: what is kept of each host's facts."
    return at_most(f"memory at {row.hosts} hosts", row.memory, MEMORY, "MiB", look)


def _per_host(rows: Sequence[Converged]) -> list[Verdict]:
    """The controller's CPU time and memory per additional host. Needs measurements of two fleet
    sizes."""
    points = {row.hosts: row for row in rows}
    if len(points) < 2:
        return []
    ours = growth({hosts: row.ours_cpu.middle for hosts, row in points.items()})
    floor = growth({hosts: row.floor_cpu.middle for hosts, row in points.items()})
    memory = growth({hosts: row.memory for hosts, row in points.items()})
    assert ours is not None
    assert floor is not None
    assert memory is not None
    cpu = f"CPU of the controller per host, within {CPU_TIMES}x the floor's"
    look = "tracemalloc in gpufleet/node/operations/node.py: what is kept of each host's facts."
    return [
        at_most(cpu, 1000 * ours, 1000 * CPU_TIMES * floor, "ms", f"Profile it: {PROFILE}."),
        at_most("memory per host", memory, MEMORY_PER_HOST, "MiB", look),
    ]


def _real(row: First) -> Verdict:
    name = f"first installation, {row.driver} driver, hosts: {row.hosts}"
    budget = f"{name}, within {REAL_TIMES}x the package manager alone"
    look = "The table of its operations above says where the time goes."
    return at_most(budget, row.ours.middle, REAL_TIMES * row.manager.middle, "s", look)


def _own(row: First) -> Verdict:
    """A driver that compiles in a second shows what is ours."""
    budget = f"first installation, {row.driver} driver, hosts: {row.hosts}, our own part"
    look = "The table of its operations above says where the time goes."
    return at_most(budget, row.ours.middle - row.manager.middle, OWN_SECONDS, "s", look)


def _cluster(row: ConvergedCluster) -> Verdict:
    budget = f"converged cluster, {row.nodes} nodes, within {CLUSTER_SECONDS:.0f} s"
    look = f"Profile it: {PROFILE}."
    return at_most(budget, row.ours.middle, CLUSTER_SECONDS, "s", look)


def _creation(row: Creation) -> list[Verdict]:
    again = f"converged cluster of {row.hosts} hosts, phases that may change it"
    look = "The seconds of its phases above say where the time goes."
    return [
        at_most(
            f"cluster create, {row.hosts} bare hosts, within {TYPED_TIMES}x a script",
            row.ours, TYPED_TIMES * row.typed, "s", look,
        ),
        at_most(
            f"{again}, within {AGAIN_TIMES:.0f}x the floor and one read of all pods",
            row.again, AGAIN_TIMES * row.floor, "s", look,
        ),
    ]  # fmt: skip


def _own_part(row: Own) -> Verdict:
    budget = "upgrade, one idle host, beside packages and reboots"
    look = "The table of its operations above says where the time goes."
    return at_most(budget, row.ours.middle, OWN_SECONDS, "s", look)


def _upgrade(row: Drained) -> list[Verdict]:
    """That budgets are kept and no pod stays holds for every fleet; speed and memory for the whole
    one alone, since a round of evictions takes its seconds however few pods there are."""
    pods = f"upgrade, {row.pods} pods of {row.drained} nodes"
    budgets = "Every eviction goes by the Eviction API: gpufleet/upgrade/operations/drain.py."
    lines = [
        at_most(f"{pods}, looks at which a budget was broken", row.broken, 0, "looks", budgets),
        at_most(f"{pods}, left on drained nodes", row.left, 0, "pods", budgets),
    ]
    if (row.nodes, row.pods) != (UPGRADE_NODES, UPGRADE_PODS):
        return lines
    rounds = "Rounds: gpufleet/upgrade/operations/cluster.py, ClusterNodes.drain."
    plan = "gpufleet/upgrade/look.py: how often a host is planned."
    memory = "gpufleet/upgrade/operations/drain.py: what is kept of lists."
    return [
        *lines,
        at_most(f"upgrade, {row.nodes} nodes planned", row.plan, PLAN_SECONDS, "s", plan),
        at_least(f"{pods}, evictions a second", row.rate, EVICTIONS, "pods/s", rounds),
        at_most(f"{pods}, all of them", row.evict, EVICTION_SECONDS, "s", rounds),
        at_most(f"{pods}, memory of the controller", row.memory, UPGRADE_MEMORY, "MiB", memory),
    ]
