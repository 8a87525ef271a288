"""Hosts of a run before they are disturbed, and hosts that it leaves as they were."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.upgrade import findings
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.run import UNREACHED, Run, passing
from gpufleet.upgrade.states import UNTOUCHED, Event, State

LEAST = 20.0  # seconds for an image to be pulled, where a round has taken long


def prepare(run: Run, hosts: Sequence[str]) -> None:
    """Fetch packages; a roll-back takes over those that its hosts have kept."""
    silent: dict[ClusterNodes, str] = {}
    began = time.monotonic()
    refused = run.each(lambda name: _check_refused(run, name, silent, began), hosts)
    good = [name for name, reason in refused.items() if reason == ""]
    if run.stopping.is_set():
        return
    results = run.step("take" if run.goes_back else "prepare", run.targets(good))
    if run.stopping.is_set():  # steps that were ended say nothing about their hosts
        return
    for name in hosts:
        reason = results[name].reason if name in results else refused[name]
        if reason is not None:
            run.write(Event.REFUSED if reason else Event.PREPARED, name, reason)
    run.pause(idle=None in refused.values())


def _check_refused(
    run: Run, name: str, silent: dict[ClusterNodes, str], began: float
) -> str | None:
    """Why a node is not disturbed: it could not be checked after its change, or its cluster has not
    answered for long; "" if it may be, None while the cluster may still answer. `silent`: clusters
    that have not answered in this round, which are not asked again; `began`: the round."""
    cluster = run.clusters.get(name)
    if cluster is None:
        return ""
    if run.stopping.is_set():
        return None
    problem = ""
    try:
        if cluster not in silent:
            problem = _unchecked(run, name, cluster, began)
    except ClusterProblem as error:
        silent[cluster] = passing(error)
    if cluster in silent:
        if run.is_silent_for_long(name, max(run.settings[name].wait, UNREACHED)):
            return silent[cluster]
        run.say_waits(name, silent[cluster])
        return None
    run.answered([name])
    if not problem:
        return ""
    found = findings.CHECK_REFUSED(problem=problem)
    return f"{found.code} {found.message}"


def _unchecked(run: Run, name: str, cluster: ClusterNodes, began: float) -> str:
    """Why a node could not be checked; "" if it can. A roll-back needs no image: what it undoes may
    be what keeps the pod that pulls it from starting. Raises ClusterProblem."""
    settings = run.settings[name]
    problem = cluster.check_refused(name, settings.gpu_image)
    if problem or run.goes_back:
        return problem
    left = began + settings.node_timeout - time.monotonic()  # for all hosts of the round
    return cluster.pull(name, settings.gpu_image, max(left, LEAST))


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
        if states[name] in (*UNTOUCHED, State.READY, State.WAITING)
    ]
