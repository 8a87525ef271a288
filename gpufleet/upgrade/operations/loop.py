"""The loop of a run: looks, decides and acts until nothing is left to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.drain.operations.cluster import ClusterNodes
from gpufleet.host.findings import ANOTHER_RUN, CHANGED_SINCE, SAME_MACHINE
from gpufleet.host.upgrade_state import OPEN, Phase
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.upgrade.decide import Around, Decision, Do, decide_acts
from gpufleet.upgrade.operations.acts import ACTS, command_act, drain_act
from gpufleet.upgrade.operations.alert_gate import alerts_of
from gpufleet.upgrade.operations.clusters import addresses_of
from gpufleet.upgrade.operations.returns import leave_behind, pass_over
from gpufleet.upgrade.operations.run import UpgradeRun, Work, passing_reason

MAX_UPGRADE_THREADS = 64
OTHER_RUN_CODES = (ANOTHER_RUN.code, CHANGED_SINCE.code, SAME_MACHINE.code)

Job = Callable[[], None]


def carry_on(run: UpgradeRun, pool: Executor | None = None) -> str:
    """Execute a run until it ends or is paused. Returns the reason. `pool`: of workers. Raises
    ClusterProblem if it cannot continue."""
    at_work: dict[Work, tuple[str, ...]] = {}
    # hosts whose nodes have our cordon
    ours = {name for cluster in set(run.clusters.values()) for name in cluster.look().ours}
    said = ""
    with pool or ThreadPoolExecutor(MAX_UPGRADE_THREADS) as workers:
        for name, state in run.states.items():
            if state.phase is Phase.STUCK:
                at_work[workers.submit(leave_behind, run, name)] = (name,)
        while True:
            busy = {name for names in at_work.values() for name in names}
            decision = _decided(run, busy, ours)
            for names, work in _work(run, decision):
                at_work[workers.submit(_bounded, run, names, work)] = names
            if not at_work and _is_over(run, decision, ours):
                _let_reboot(run)
                return decision.end
            if decision.waits and decision.waits != said and not at_work:
                until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(decision.until))
                run.say(f"waiting for the {one_line(decision.waits)} until {until}")
                said = decision.waits
            if not at_work:
                run.timing.sleep(run.timing.tick)
            for future in run.timing.first_done(list(at_work), run.timing.tick):
                names = at_work.pop(future)
                future.result()
                ours -= {name for name in names if not run.states[name].out}


def _is_over(run: UpgradeRun, decision: Decision, ours: set[str]) -> bool:
    """True if this process has nothing left to do, now or later."""
    if decision.acts or decision.waits:
        return False
    later = decide_acts([replace(each, due=True) for each in run.hosts(set(), ours)],
                   run.plan.limits, _around(run))  # fmt: skip
    return not (later.acts or later.waits)


def _around(run: UpgradeRun) -> Around:
    return Around(run.now, run.asked, run.plan.unreached, behind=run.plan.behind)


def _decided(run: UpgradeRun, busy: set[str], ours: set[str]) -> Decision:
    """The decision. Clusters and alerts are queried only before a host is taken out of service."""
    hosts, around = run.hosts(busy, ours), _around(run)
    decision = decide_acts(hosts, run.plan.limits, around)
    begins = [n for n, do in decision.acts.items()
              if do is Do.DRAIN and run.states[n].phase in OPEN]  # fmt: skip
    if not begins:
        return decision
    try:
        away, behind = set[str](), set(around.behind)
        out = {n for n, state in run.states.items() if state.out_of_service}
        for cluster in _of(run, run.states):
            mine = {node for name, node in cluster.nodes.items() if name in out}
            seen = cluster.look()
            away |= set(seen.away) - mine
            behind |= set(seen.behind) - mine
        alerts = _alerts(run, out)
        around = replace(around, away=tuple(sorted(away)), behind=tuple(sorted(behind)),
                         alerts=alerts)  # fmt: skip
        reboots = {node for cluster in _of(run, begins) for node in cluster.kured.taken()}
    except ClusterProblem as error:
        return decide_acts(hosts, run.plan.limits, replace(around, silent=passing_reason(error)))
    return decide_acts(hosts, run.plan.limits, replace(around, reboots=tuple(sorted(reboots))))


def _of(run: UpgradeRun, hosts: Iterable[str]) -> set[ClusterNodes]:
    return {run.clusters[name] for name in hosts if name in run.clusters}


def _alerts(run: UpgradeRun, out: set[str]) -> tuple[str, ...]:
    """Firing alerts about hosts that the run has not taken out of service."""
    limits = run.plan.limits
    if not limits.alerts:
        return ()
    nodes = {run.clusters[name].nodes[name] for name in out if name in run.clusters}
    names = {*out, *nodes}
    known = names.union(*(addresses_of(name) for name in names))
    return alerts_of(limits.alerts, limits.alerts_ignored, known)


def _let_reboot(run: UpgradeRun) -> None:
    """Release kured's lock, except in clusters with hosts that are still out of service."""
    held = _of(run, [name for name, state in run.states.items() if state.out])
    for cluster in set(run.clusters.values()) - held:
        try:
            cluster.kured.give_back()
        except ClusterProblem as error:
            run.say(f"cannot release kured's lock: {passing_reason(error)}")


def _work(run: UpgradeRun, decision: Decision) -> list[tuple[tuple[str, ...], Job]]:
    """The work of each worker: one host, or the hosts of a cluster that are being drained."""
    found: list[tuple[tuple[str, ...], Job]] = []
    drains: dict[ClusterNodes | str, list[str]] = {}
    for name, do in decision.acts.items():
        commands = run.settings[name].drain_command is not None and name not in run.commanded
        if do is Do.PASS:
            work = partial(pass_over, run, name, decision.why[name])
        elif do is Do.DRAIN and not commands:
            drains.setdefault(run.clusters.get(name, name), []).append(name)
            continue
        else:
            work = partial(command_act if do is Do.DRAIN else ACTS[do], run, name)
        found.append(((name,), work))
    for names in drains.values():
        found.append((tuple(names), partial(drain_act, run, names)))
    return found


def _bounded(run: UpgradeRun, hosts: tuple[str, ...], work: Job) -> None:
    """Work on hosts. One that does not answer is tried again for a time. Then, or if another run
    owns it, this process gives it up."""
    try:
        work()
    except ClusterProblem:  # the Lease is lost: another run is at work
        raise
    except Stopped as error:
        finding = error.findings[0]
        for name in hosts:
            of_others = finding.code in OTHER_RUN_CODES
            if of_others or not run.waits(name, finding.message, run.silence(name)):
                run.silent |= set() if of_others else {name}
                run.given_up[name] = finding
                run.say(f"{name}: given up: {finding.text}")
