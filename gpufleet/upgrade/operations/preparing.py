"""Hosts of a run before they are disturbed, and hosts that it leaves as they were."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError
from gpufleet.upgrade.findings import nodes as findings
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.run import UNREACHED, Run, passing
from gpufleet.upgrade.states import TO_RETURN, UNTOUCHED, Event, State


def prepare(run: Run, hosts: Sequence[str]) -> None:
    """Fetch packages; a roll-back takes over those that its hosts have kept."""
    silent: dict[ClusterNodes, str] = {}
    since = run.clock.now()
    refused = run.each(lambda name: _check_refused(run, name, silent, since), hosts)
    waiting = [name for name, reason in refused.items() if reason is None]
    run.round_over(waiting)
    good = [name for name, reason in refused.items() if reason == ""]
    if run.stopping.is_set() or run.store.request == "abort":  # which ends the looks, too
        return
    results = run.step("take" if run.goes_back else "prepare", run.targets(good))
    if run.stopping.is_set():  # steps that were ended say nothing about their hosts
        return
    for name in hosts:
        reason = results[name].reason if name in results else refused[name]
        if reason is not None:
            run.write(Event.REFUSED if reason else Event.PREPARED, name, reason)
    run.pause(idle=bool(waiting))


def _check_refused(
    run: Run, name: str, silent: dict[ClusterNodes, str], since: float
) -> str | None:
    """Why a node is not disturbed: it could not be checked after its change, or its cluster has not
    answered for long; "" if it may be, None while that is not known. `silent`: clusters that were
    not reached in this round, which are not asked again; `since`: when the round began."""
    cluster = run.clusters.get(name)
    if cluster is None:
        return ""
    if run.stopping.is_set():
        return None
    if cluster in silent:
        return _waited_for(run, name, silent[cluster], since)
    try:
        problem = _unchecked(run, name, cluster)
    except ApiError as error:  # an answer about this node alone: it may be gone
        return passing(error) if error.is_final else _waited_for(run, name, passing(error), since)
    except ClusterProblem as error:
        silent[cluster] = passing(error)
        return _waited_for(run, name, silent[cluster], since)
    run.answered([name])
    if not problem:
        return problem
    found = findings.CHECK_REFUSED(problem=problem)
    return f"{found.code} {found.message}"


def _waited_for(run: Run, name: str, problem: str, since: float) -> str | None:
    """None while a cluster may still answer."""
    if run.is_silent_for_long(name, max(run.settings[name].wait, UNREACHED), since=since):
        return problem
    run.say_waits(name, problem)
    return None


def _unchecked(run: Run, name: str, cluster: ClusterNodes) -> str | None:
    """Why a node could not be checked; "" if it can, None where the run is aborted. What a
    roll-back undoes may keep the pod that pulls the image from starting: only a fault of the image
    counts there. Raises ClusterProblem."""
    settings = run.settings[name]
    if problem := cluster.check_refused(name, settings.gpu_image):
        return problem
    pull = cluster.pull(name, settings.gpu_image, settings.node_timeout)
    if run.store.request == "abort":
        return None
    refuses = ("image",) if run.goes_back else ("image", "node", "disk")
    return pull.reason if pull.came in refuses else ""


def release(run: Run) -> None:
    """Leave the hosts that were not changed to other runs. One that is not reached stays this
    run's: others refuse it, and say what to do."""
    hosts = _unchanged(run)
    results = run.step("release", run.targets(hosts))
    for name, result in results.items():
        if not result.ok:
            run.say(f"{name}: its packages could not be released: {result.reason}")


def _unchanged(run: Run) -> list[str]:
    """The hosts of the waves that may have been begun, as far as they were not changed."""
    states, waves = run.progress.states, run.plan.waves
    free = (*UNTOUCHED, *TO_RETURN, State.READY, State.WAITING)
    begun = [
        n for n, wave in enumerate(waves) if any(states[h] is not State.WAITING for h in wave.hosts)
    ]
    lost = run.progress.lost_groups()
    first = begun[-1] + 1 if begun else 0
    following = (  # a process that was killed may have prepared hosts of it; none of later ones
        n + 1
        for n, wave in enumerate(waves)
        if n >= first and any(run.plan.by_name[h].group not in lost for h in wave.hosts)
    )
    return [
        name
        for wave in waves[: next(following, first + 1)]
        for name in wave.hosts
        if states[name] in free
    ]
