"""Drained hosts of a run: their change, its checks, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import is_final
from gpufleet.upgrade.findings.hosts import NOT_OURS, NOT_PREPARED
from gpufleet.upgrade.findings.nodes import IMAGE_MISSING
from gpufleet.upgrade.models import names
from gpufleet.upgrade.operations.children import Result
from gpufleet.upgrade.operations.drain import Round
from gpufleet.upgrade.operations.draining import policy_of
from gpufleet.upgrade.operations.run import UNREACHED, Run, passing
from gpufleet.upgrade.states import Event, State

Versions = Mapping[str, str]  # host -> version of the driver
IMAGE = "image"  # what a cluster is asked about, besides its nodes
PASSING = ("disk", "later")  # what may end by itself, in minutes
REFUSALS = (NOT_OURS.code, NOT_PREPARED.code)  # of the first command of a change


def change(run: Run, hosts: Sequence[str]) -> None:
    """Change hosts, and check them. One that was not changed is no failure."""
    drained = [name for name in hosts if run.progress.states[name] is State.DRAINED]
    fresh = _checkable(run, drained)
    if run.stopping.is_set():
        return
    left = [name for name in hosts if name not in drained or name in fresh]
    for name in fresh:
        run.write(Event.CHANGE_BEGAN, name)
    act = _back if run.goes_back else _forward
    results, held = _cleared(run, run.targets(left), act)
    if run.stopping.is_set():
        return
    results = _checked(run, results)
    if run.stopping.is_set():  # the run ends these commands too
        return
    silent = {name for name, found in results.items() if _waits_for_cluster(run, name, found)}
    bad = {name: found for name, found in results.items() if not found.ok and name not in silent}
    spared = _untouched(run, bad, frozenset(fresh), held)
    if run.stopping.is_set():
        return
    for name, result in results.items():
        if name in silent:
            continue
        if name not in spared and not result.reached and _may_come_back(run, name, result):
            continue
        event = Event.CHANGED if result.ok else Event.CHANGE_FAILED
        run.write(Event.NOT_REACHED if name in spared else event, name, result.reason)
    waiting = (State.DRAINED, State.CHANGING)
    run.pause(idle=all(run.progress.states[name] in waiting for name in hosts))


def restore(run: Run, hosts: Sequence[str]) -> None:
    """Roll hosts back. One whose GPUs are in use is waited for, then left out of service with the
    reason: its work is not ended."""
    for name in hosts:
        if run.progress.states[name] is State.FAILED:
            run.write(Event.RESTORE_BEGAN, name)
    results, _ = _cleared(run, run.earlier(hosts), _back)
    if run.stopping.is_set():
        return
    for name in hosts:
        result = results[name]
        aborted = run.store.request == "abort"
        if result.busy and not aborted and run.may_wait(name, result.reason):
            continue
        if not result.reached and _may_come_back(run, name, result):
            continue
        if _waits_for_cluster(run, name, result):
            continue
        run.write(Event.RESTORED if result.ok else Event.RESTORE_FAILED, name, result.reason)
        if not result.ok and name in run.clusters:
            run.unmarked[name] = result.reason
    mark_left(run)
    run.pause(idle=all(run.progress.states[name] is State.RESTORING for name in hosts))


def mark_left(run: Run) -> None:
    """Say on nodes that they were left behind; later, where their cluster does not answer."""
    for name, reason in list(run.unmarked.items()):
        try:
            run.clusters[name].leave_behind(name, reason)
        except ClusterProblem as error:
            why = passing(error)
            if not is_final(error):
                run.say_waits(name, f"its node has no mark yet: {why}")
                continue
            run.say(f"{name}: its node stays cordoned without a mark: {why}")
        del run.unmarked[name]


def _waits_for_cluster(run: Run, name: str, result: Result) -> bool:
    return result.silent and _may_come_back(run, name, result)


def _may_come_back(run: Run, name: str, result: Result) -> bool:
    """Whether a host that does not answer is waited for: it may be out of reach for a moment."""
    wait = 0 if run.store.request == "abort" else run.settings[name].wait
    return run.may_wait(name, result.reason, max(wait, UNREACHED))


def _forward(run: Run, versions: Versions) -> dict[str, Result]:
    return run.step("change", versions)


def _back(run: Run, versions: Versions) -> dict[str, Result]:
    """Install earlier versions from the hosts' own folders, then load and check them."""
    first = run.step("restore", versions)
    if run.plan.subject == "reboot":  # there is nothing to load
        return first
    good = {name: version for name, version in versions.items() if first[name].ok}
    return {**first, **run.step("change", good)}


def _cleared(
    run: Run,
    versions: Versions,
    act: Callable[[Run, Versions], dict[str, Result]],
) -> tuple[dict[str, Result], frozenset[str]]:
    """Change hosts without their clients of the GPUs; those of nodes then come back and have a GPU
    pod run. Also the hosts whose clients did not go: nothing was done with them."""

    def clear(name: str) -> Round:
        cluster = run.clusters.get(name)
        if cluster is None:
            return Round(True)
        try:
            return cluster.clear(name, policy_of(run.settings[name]))
        except ClusterProblem as error:
            return Round(reasons=[passing(error)], silent=True)

    def check(name: str) -> Result:
        cluster, settings = run.clusters.get(name), run.settings[name]
        if cluster is None:
            return Result(True)
        try:
            problem = cluster.check(name, settings.gpu_image, settings.node_timeout)
        except ClusterProblem as error:
            return Result(False, passing(error), silent=True)
        return Result(not problem, problem or cluster.unchecked.get(name, ""))

    rounds = run.each(clear, list(versions))
    held = {name: found for name, found in rounds.items() if not found.drained}
    results = {name: _held(found) for name, found in held.items()}
    free = {name: version for name, version in versions.items() if name not in held}
    results |= act(run, free) if free else {}
    if run.stopping.is_set():
        return results, frozenset(held)
    good = [name for name, result in results.items() if result.ok]
    results |= {name: found for name, found in run.each(check, good).items() if found.reason}
    return results, frozenset(held)


def _checkable(run: Run, hosts: Sequence[str]) -> list[str]:
    """Those of drained hosts that can be checked after their change. The others are not changed, or
    wait: the image may not have been pulled before the drain, for lack of room or by this process.
    """
    since = run.clock.now()
    found = run.each(lambda name: _without_image(run, name, since), hosts)
    run.round_over(hosts, IMAGE)
    if run.stopping.is_set() or run.store.request == "abort":
        return []
    for name, reason in found.items():
        if reason:
            missing = IMAGE_MISSING(problem=reason)
            run.write(Event.NOT_REACHED, name, f"{missing.code} {missing.message}")
    return [name for name, reason in found.items() if reason == ""]


def _without_image(run: Run, name: str, since: float) -> str | None:
    """Why a drained node could not be checked; "" if it can, None while that is not known. `since`:
    when this round of looks began."""
    cluster, settings = run.clusters.get(name), run.settings[name]
    if cluster is None or run.goes_back or name in cluster.has_image:
        return ""
    try:
        pull = cluster.pull(name, settings.gpu_image, settings.node_timeout)
    except ClusterProblem as error:
        if run.is_silent_for_long(name, max(settings.wait, UNREACHED), IMAGE, since=since):
            return passing(error)
        run.say_waits(name, passing(error))
        return None
    run.answered([name], IMAGE)
    wait = min(settings.wait, UNREACHED)
    if pull.came in PASSING and run.may_wait(name, pull.reason, wait):
        return None
    return "" if pull.came == "there" else pull.reason


def _held(found: Round) -> Result:
    """A node whose pods did not go: by their end it can be changed, unless it is given up."""
    if found.silent:
        return Result(False, names(found.reasons), silent=True)
    reason = found.given_up or f"pods do not end: {names(found.reasons)}"
    return Result(False, reason, busy=not found.given_up)


def _checked(run: Run, results: Mapping[str, Result]) -> dict[str, Result]:
    """The results with those of the command that checks a changed host."""

    def check(name: str) -> Result:
        settings, result = run.settings[name], results[name]
        if not result.ok or settings.check_command is None:
            return result
        said = run.hooks.result(settings.check_command, name, settings.command_timeout)
        return Result(False, f"upgrade_check_command: {said}") if said else result

    return run.each(check, list(results))


def _untouched(
    run: Run, bad: Mapping[str, Result], fresh: Collection[str], held: Collection[str]
) -> frozenset[str]:
    """Those of the hosts that were not changed: `held`, to which no step was sent, and those that
    say so. One that does not answer counts as changed.

    What an earlier process did with a host that is not `fresh` is not known. A roll-back has two
    steps: a refusal may be of the second.
    """
    sure = [name for name in bad if name in fresh and name in held]
    if not run.goes_back:
        sure += [
            name
            for name, result in bad.items()
            if name in fresh and (result.code in REFUSALS or not result.reached)
        ]
    unsure = [name for name in bad if name not in sure and bad[name].reached]
    seen = run.step("look", run.targets(unsure))
    prepared = [
        name
        for name, found in seen.items()
        if (found.plan.get("owner"), found.plan.get("at")) == (run.store.name, "prepared")
    ]
    return frozenset((*sure, *prepared))
