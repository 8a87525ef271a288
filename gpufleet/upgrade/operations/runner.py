"""Carries out a run: decides, acts, writes down, until nothing is left to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from gpufleet.core.stopped import Stopped
from gpufleet.core.visible import one_line
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import is_final
from gpufleet.upgrade.decide import AGAIN, UNRETURNED, Act, Around, Decision, Do, End, Wait, decide
from gpufleet.upgrade.findings.hosts import COMMAND_FAILED
from gpufleet.upgrade.findings.nodes import NODE_REFUSED, UNMARKED
from gpufleet.upgrade.models import names
from gpufleet.upgrade.operations.alert_gate import alerts_of
from gpufleet.upgrade.operations.changing import change, mark_left, restore
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.clusters import addresses_of
from gpufleet.upgrade.operations.draining import drain, leave, ready
from gpufleet.upgrade.operations.preparing import prepare, release
from gpufleet.upgrade.operations.run import UNREACHED, Run, passing
from gpufleet.upgrade.progress import OVER
from gpufleet.upgrade.states import OUT_OF_SERVICE, UNTOUCHED, Event, State

IDLE = 2.0  # seconds between two looks at requests


def carry_on(run: Run) -> End:
    """Until the run ends, is paused or interrupted. Raises Stopped where it cannot go on."""
    waited = ""
    while True:
        mark_left(run)
        decision = _decided(run)
        if isinstance(decision, End):
            if not _ended(run, decision):
                return _interrupted(run)
            if decision.event == "paused" and run.store.request == "abort":
                continue  # it was requested meanwhile
            return decision
        if run.stopping.is_set():
            return _interrupted(run)
        if isinstance(decision, Wait):
            left = max(decision.until - run.clock.now(), 0)
            if decision.reason != waited:
                waited = decision.reason
                until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() + left))
                run.say(f"waiting for the {one_line(waited)} until {until}")
            _wait(run, min(decision.until, run.clock.now() + AGAIN))
            continue
        waited = ""
        _act(run, decision)


def _act(run: Run, act: Act) -> None:
    """Carry out a step; hosts whose state stays are tried after others."""
    if run.tried.issuperset(act.hosts):
        run.tried.clear()  # all have had their turn
    before = {name: run.progress.states[name] for name in act.hosts}
    ACTS[act.do](run, act.hosts)
    for name, state in before.items():
        if run.progress.states[name] is state:
            run.tried.add(name)
        else:
            run.tried.discard(name)


def _ended(run: Run, end: End) -> bool:
    """Write down the end of a run or of this process; False where it is interrupted meanwhile.
    Raises Stopped."""
    if end.event == UNRETURNED:
        _interrupted(run)
        raise Stopped(*dict.fromkeys(run.unreturned.values()))
    if end.event in OVER:
        _mark_all(run)
        release(run)
        if run.stopping.is_set():
            return False
    _let_reboot(run, run.clusters)
    run.write(end.event, reason=end.reason)
    return True


def _interrupted(run: Run) -> End:
    """Hosts that are out of service keep kured from rebooting others of their clusters."""
    out = set(run.progress.at_work)
    held = {run.clusters[name] for name in out if name in run.clusters}
    _let_reboot(run, [name for name, each in run.clusters.items() if each not in held])
    return End("interrupted")


def _mark_all(run: Run) -> None:
    """Wait until every node that is left behind says so: the run that is over marks none. Raises
    Stopped."""
    ends = run.clock.now() + (0 if run.store.request == "abort" else UNREACHED)
    while run.unmarked and not run.stopping.is_set():
        if run.clock.now() >= ends:
            raise Stopped(UNMARKED(run=run.store.name, hosts=names(list(run.unmarked))))
        run.pause(idle=True)
        mark_left(run)


def _wait(run: Run, until: float) -> None:
    """Until then, or until something is requested."""
    request = run.store.request
    while (left := until - run.clock.now()) > 0 and run.store.request == request:
        if run.stopping.wait(min(left, IDLE)):
            return


def _decided(run: Run) -> Decision:
    """Clusters and alerts are asked for only where a host is to be taken out of service."""
    around = Around(
        run.clock.now(),
        time.time(),
        run.store.request,
        unreturned=tuple(run.unreturned),
        tried=frozenset(run.tried),
    )
    decision = decide(run.progress, around)
    if isinstance(decision, Act) and any(
        run.progress.states[name] is State.READY for name in decision.hosts
    ):
        try:
            return _decided_by_clusters(run, around)
        except ClusterProblem as error:
            return decide(run.progress, replace(around, silent=passing(error)))
    return decision


def _decided_by_clusters(run: Run, around: Around) -> Decision:
    """Raises ClusterProblem."""
    away, behind = list[str](), list[str]()
    for cluster, hosts in _asked(run).items():
        since = run.clock.now()
        try:
            counted = _counted(run, cluster, hosts)
            seen = cluster.look()
        except ClusterProblem as error:
            _leave_alone(run, hosts, error, since)
        else:
            away += [node for node in seen.away if node not in counted]
            behind += [node for node in seen.behind if node not in counted]
            run.answered(hosts)
    around = replace(
        around, away=tuple(sorted(away)), behind=tuple(sorted(behind)), alerts=_alerts(run)
    )
    passed = set[ClusterNodes]()
    while isinstance(decision := decide(run.progress, around), Act) and not around.reboots:
        before = len(passed)
        reboots = _reboots(run, decision.hosts, passed)
        if not reboots and len(passed) == before:
            return decision
        around = replace(around, reboots=reboots)
    return decision


def _counted(run: Run, cluster: ClusterNodes, hosts: Sequence[str]) -> set[str]:
    """The nodes of those of the hosts that are out of service by the record."""
    return {cluster.nodes[name] for name in hosts if run.progress.states[name] in OUT_OF_SERVICE}


def _asked(run: Run) -> dict[ClusterNodes, list[str]]:
    """The clusters, with their hosts, without those hosts that the run leaves as they are."""
    found: dict[ClusterNodes, list[str]] = {}
    for name, cluster in run.clusters.items():
        if run.progress.states[name] not in UNTOUCHED:
            found.setdefault(cluster, []).append(name)
    return found


def _leave_alone(
    run: Run, hosts: Sequence[str], error: ClusterProblem, since: float, asked: str = ""
) -> None:
    """Pass over what is not begun of a cluster that has not answered for long. `since`: when it was
    asked. Raises the error where it may still answer."""
    reason = passing(error)
    limits = {name: max(run.settings[name].wait, UNREACHED) for name in hosts}
    silent = [
        run.is_silent_for_long(name, limit, asked, since=since) for name, limit in limits.items()
    ]
    if not all(silent):
        raise error
    for name in hosts:
        if run.progress.states[name] is State.READY:
            run.write(Event.REFUSED, name, reason)


def _alerts(run: Run) -> tuple[str, ...]:
    limits = run.plan.limits
    if not limits.alerts:
        return ()
    return alerts_of(limits.alerts, limits.alerts_ignored, _names_away(run))


def _names_away(run: Run) -> set[str]:
    """The hosts that the run has out of service, as alerts may name them."""
    hosts = [name for name, state in run.progress.states.items() if state in OUT_OF_SERVICE]
    nodes = {run.clusters[name].nodes[name] for name in hosts if name in run.clusters}
    names = {*hosts, *nodes}
    return names.union(*(addresses_of(name) for name in names))


def _reboots(run: Run, hosts: Sequence[str], passed: set[ClusterNodes]) -> tuple[str, ...]:
    """The nodes that kured reboots in the clusters of these hosts; where there are none, its lock
    is the run's from now on. Clusters that have not let it be taken for long are added to `passed`,
    and their hosts passed over. Raises ClusterProblem."""
    found = list[str]()
    for cluster, mine in _asked(run).items():
        if cluster in passed or not set(mine) & set(hosts):
            continue
        since = run.clock.now()
        try:
            found += cluster.kured.taken()
        except ClusterProblem as error:
            _leave_alone(run, mine, error, since, "kured")
            passed.add(cluster)
        else:
            run.answered(mine, "kured")
    return tuple(found)


def _let_reboot(run: Run, hosts: Iterable[str]) -> None:
    """In the clusters of these hosts, kured may begin again."""
    for cluster in {run.clusters[name] for name in hosts}:
        try:
            cluster.kured.give_back()
        except ClusterProblem as error:
            run.say(f"cannot release kured's lock: {passing(error)}")


def give_back(run: Run, hosts: Sequence[str]) -> None:
    """Return hosts to service. Where the command for that fails, or the cluster refuses, the other
    hosts are finished first; a resume tries again, and an abort goes on without the command."""
    kept = run.each(lambda name: _kept(run, name), hosts)
    free = [name for name, (why, _) in kept.items() if why == ""]
    said = run.each(lambda name: ready(run, name), free)
    if run.stopping.is_set() and any(said.values()):  # the run ends these commands too
        said = {name: problem for name, problem in said.items() if not problem}
    aborts = run.store.request == "abort"
    for name, problem in said.items():
        if aborts or not problem:
            without = f"without its upgrade_ready_command: {problem}" if problem else ""
            run.write(Event.RETURNED, name, _added(run, name, kept[name][1], without))
        else:
            run.unreturned[name] = COMMAND_FAILED(
                run=run.store.name,
                key="upgrade_ready_command",
                host=name,
                status="an error",
                output=problem,
            )
            run.say(f"{name}: upgrade_ready_command: {problem}")
    for name in hosts:
        if why := kept[name][0]:
            run.unreturned[name] = NODE_REFUSED(run=run.store.name, host=name, reason=why)
            run.say(f"{name}: its node is not returned: {why}")
    run.pause(idle=len(said) < len(hosts))


def _kept(run: Run, name: str) -> tuple[str | None, str]:
    """Why its cluster refuses to take the host's node back into service, "" where it has, None
    while it does not answer; and what may be left of the run on the node."""
    cluster = run.clusters.get(name)
    if cluster is None:
        return "", ""
    try:
        left = cluster.give_back(name)
    except ClusterProblem as error:
        reason = passing(error)
        if is_final(error):
            return reason, ""
        run.say_waits(name, reason)
        return None, ""
    if run.settings[name].ready_command is not None and name not in run.progress.returned:
        run.write(Event.NODE_RETURNED, name)  # the command may take long, and fail
    return "", left


def _added(run: Run, name: str, *more: str) -> str:
    """More reasons, before that which a host has; "" without more."""
    added = [each for each in more if each]
    known = run.progress.reasons.get(name)
    return "; ".join(dict.fromkeys(filter(None, (*added, known)))) if added else ""


ACTS: dict[Do, Callable[[Run, Sequence[str]], None]] = {
    Do.PREPARE: prepare,
    Do.DRAIN: drain,
    Do.LEAVE: leave,
    Do.CHANGE: change,
    Do.RESTORE: restore,
    Do.RETURN: give_back,
}
