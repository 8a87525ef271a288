"""Hosts of a run before they are disturbed, and hosts that it leaves as they were."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.upgrade import findings
from gpufleet.upgrade.operations.run import Run, passing
from gpufleet.upgrade.states import UNTOUCHED, Event, State


def prepare(run: Run, hosts: Sequence[str]) -> None:
    """Fetch packages; a roll-back takes over those that its hosts have kept."""
    results = run.step("take" if run.goes_back else "prepare", run.targets(hosts))
    if run.stopping.is_set():  # steps that were ended say nothing about their hosts
        return
    good = [name for name, result in results.items() if result.ok]
    refused = run.each(lambda name: _check_refused(run, name), good)
    silent = [name for name, reason in refused.items() if reason is None]
    for name in hosts:
        reason = results[name].reason or refused.get(name, "")
        if name not in silent:
            run.write(Event.REFUSED if reason else Event.PREPARED, name, reason or "")
    run.pause(idle=bool(silent))


def _check_refused(run: Run, name: str) -> str | None:
    """Why a node could not be checked after its change, before it is disturbed; "" if it could,
    None while its cluster does not answer."""
    cluster = run.clusters.get(name)
    if cluster is None:
        return ""
    try:
        problem = cluster.check_refused(name, run.settings[name].gpu_image)
    except ClusterProblem as error:
        run.say(f"{name}: waits: {passing(error)}")
        return None
    if not problem:
        return ""
    found = findings.CHECK_REFUSED(problem=problem)
    return f"{found.code} {found.message}"


def release(run: Run) -> None:
    """Leave the hosts that were not changed to other runs. One that is not reached stays this
    run's: others refuse it, and say what to do."""
    hosts = _unchanged(run)
    results = run.step("release", run.targets(hosts))
    for name, result in results.items():
        if not result.ok:
            run.say(f"{name}: its packages could not be released: {result.reason}")


def _unchanged(run: Run) -> list[str]:
    """Those of the waves that were begun, as far as they were not changed."""
    found: list[str] = []
    states = run.progress.states
    for wave in run.plan.waves:
        found += [n for n in wave.hosts if states[n] in (*UNTOUCHED, State.READY, State.WAITING)]
        if all(states[name] is State.WAITING for name in wave.hosts):
            break  # a process that was killed may have prepared hosts of it; none of later ones
    return found
