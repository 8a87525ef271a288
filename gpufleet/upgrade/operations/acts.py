"""Acts on one host of a run. Each act first writes the new state to the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpufleet.core.names import list_names
from gpufleet.drain.operations.evict import Round
from gpufleet.drain.pods import Policy
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.host.upgrade_state import Phase, both_reasons
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import ApiError, is_final
from gpufleet.upgrade.decide import ABORT_REQUESTED, Do
from gpufleet.upgrade.findings.nodes import CHECK_REFUSED
from gpufleet.upgrade.operations.hooks import run_command
from gpufleet.upgrade.operations.result import StepResult
from gpufleet.upgrade.operations.returns import give_back, leave_act, leave_behind, pass_over
from gpufleet.upgrade.operations.run import UpgradeRun, passing_reason
from gpufleet.upgrade.subjects import offers_after

PASSING_CONDITIONS = ("disk", "later")  # conditions that may end within minutes


def policy_of(settings: UpgradeSettings) -> Policy:
    """How to treat pods, by the settings of a host."""
    return Policy(
        every=settings.drain == "all",
        jobs=settings.jobs,
        empty_dir=settings.evict_empty_dir,
        unmanaged=settings.evict_unmanaged,
    )


def prepare_act(run: UpgradeRun, name: str) -> None:
    """Fetch packages and pull the image of the checking pod, while the host works."""
    if name in run.clusters:
        try:
            problem = _check_refused(run, name)
        except ClusterProblem as error:
            problem = passing_reason(error)
            final = isinstance(error, ApiError) and error.is_final  # about this node alone
            if not final and run.waits(name, problem, run.silence(name)):
                return
        if problem:
            pass_over(run, name, problem)
            return
    step = "take" if run.goes_back else "prepare"
    result = run.step(name, step, run.states[name].target)
    if result.ok:
        run.write(name, Phase.PREPARED)
    elif not (result.busy and run.waits(name, result.reason, run.settings[name].wait)):
        pass_over(run, name, result.reason)


def _check_refused(run: UpgradeRun, name: str) -> str | None:
    """Why the node could not be checked after its change, or None if no reason is known. Before a
    roll-back only a fault of the image counts: the roll-back may repair whatever else keeps the pod
    from starting. Raises ClusterProblem."""
    cluster, settings = run.clusters[name], run.settings[name]
    problem = cluster.check_refused(name, settings.gpu_image)
    if not problem:
        pull = cluster.pull(name, settings.gpu_image, settings.node_timeout)
        refuses = ("image",) if run.goes_back else ("image", "node", "disk")
        problem = pull.reason if pull.came in refuses else ""
    return CHECK_REFUSED(problem=problem).text if problem else None


def begin_drain(run: UpgradeRun, name: str) -> None:
    """Begin the drain. From here on the host is out of service."""
    if run.states[name].phase is Phase.PREPARED:
        run.idle.discard(name)
        run.write(name, Phase.DRAINING, out=True)


def command_act(run: UpgradeRun, name: str) -> None:
    """Run upgrade_drain_command. The state is written first, so that upgrade_ready_command runs
    even if this process is killed."""
    begin_drain(run, name)
    settings = run.settings[name]
    assert settings.drain_command
    if not run.states[name].commanded:
        run.write(name, Phase.DRAINING, commanded=True)
    limit = settings.wait + settings.command_timeout
    problem = run_command(settings.drain_command, name, limit, lambda: bool(run.asked))
    if problem is None:
        run.commanded.add(name)
    elif not run.asked:
        pass_over(run, name, f"upgrade_drain_command: {problem}")


def drain_act(run: UpgradeRun, hosts: Sequence[str]) -> None:
    """One pass over hosts of one cluster, or over one host outside of Kubernetes: evict pods, then
    look for other users of the GPUs."""
    for name in hosts:
        begin_drain(run, name)
    for name, found in _evicted(run, hosts).items():
        if found.given_up:
            pass_over(run, name, found.given_up)
        elif not found.drained:
            reason = list_names(found.reasons, 3) or "pods are ending"
            _wait_for_end(run, name, reason, soon=bool(found.evicted))
        else:
            seen = run.step(name, "look", run.states[name].target)
            work = [str(each) for each in seen.plan.get("work") or ()]
            if seen.ok and not work:
                run.idle.add(name)
            else:
                reason = f"GPU work: {list_names(work)}" if seen.ok else seen.reason
                _wait_for_end(run, name, reason)


def _evicted(run: UpgradeRun, hosts: Sequence[str]) -> Mapping[str, Round]:
    cluster = run.clusters.get(hosts[0])
    if cluster is None:
        return {name: Round(drained=True) for name in hosts}
    try:
        return cluster.drain({name: policy_of(run.settings[name]) for name in hosts})
    except ClusterProblem as error:
        return {name: Round(reasons=[passing_reason(error)]) for name in hosts}


def _wait_for_end(run: UpgradeRun, name: str, reason: str, *, soon: bool = False) -> None:
    """Give a host up after its wait has ended."""
    if run.now - run.states[name].since >= run.settings[name].wait:
        pass_over(run, name, reason)
    else:
        run.later(name, reason, soon=soon)


def change_act(run: UpgradeRun, name: str) -> None:
    """Change a drained host and check it. An untouched host is passed over, and does not count as
    failed."""
    state = run.states[name]
    if state.phase is Phase.DRAINING:
        if (problem := _without_image(run, name)) is None:
            return
        if problem:
            pass_over(run, name, CHECK_REFUSED(problem=problem).text)
            return
        run.fresh.add(name)
        run.write(name, Phase.CHANGING, attempts=state.attempts + 1)
        run.idle.discard(name)
    elif run.asked == "abort" and state.before != state.target and _is_put_back(run, name):
        return
    steps = ("restore", "change") if run.goes_back else ("change",)
    result = _cleared(run, name, state.target, steps)
    settings = run.settings[name]
    if result.ok and settings.check_command is not None:
        said = run_command(settings.check_command, name, settings.command_timeout)
        if said:
            result = StepResult(False, f"upgrade_check_command: {said}", touched=True)
    untouched = name in run.fresh and not result.touched
    if result.touched:  # even if its new state cannot be written
        run.fresh.discard(name)
    if result.ok:
        run.write(name, Phase.DONE, result.reason, behind=False)
    elif not _may_succeed(run, name, result):
        if untouched:
            pass_over(run, name, result.reason)
        else:
            run.write(name, Phase.RESTORING, result.reason)


def _is_put_back(run: UpgradeRun, name: str) -> bool:
    """For an abort: leave a host unchanged if an earlier process was ended before it installed
    anything. If pins or modules were changed, it is rolled back. True also if the host may answer
    later."""
    earlier = run.states[name].before
    seen = run.step(name, "look", earlier)
    if not seen.ok:
        return _may_succeed(run, name, seen)
    if seen.plan.get("before") != earlier:
        return False
    if seen.plan.get("loaded") == earlier and not seen.plan.get("refusals"):
        pass_over(run, name, ABORT_REQUESTED)
    else:
        run.write(name, Phase.RESTORING, ABORT_REQUESTED)
    return True


def restore_act(run: UpgradeRun, name: str) -> None:
    """Roll a host back. Waits for work that began on its GPUs, and never ends it."""
    state = run.states[name]
    earlier = state.target if run.goes_back else state.before
    result = _cleared(run, name, earlier, ("restore", "change"))
    if result.ok:
        run.write(name, Phase.DONE if run.goes_back else Phase.REVERTED, behind=False)
    elif not _may_succeed(run, name, result):
        run.write(name, Phase.STUCK, both_reasons(result.reason, state.why))
        leave_behind(run, name)


def _may_succeed(run: UpgradeRun, name: str, result: StepResult) -> bool:
    """True if a step is tried again later: another run is at work, or the host or its cluster does
    not answer."""
    if result.busy:
        wait = 0 if run.asked == "abort" else run.settings[name].wait
        return run.waits(name, result.reason, wait)
    away = result.silent or not result.reached
    return away and run.waits(name, result.reason, run.silence(name))


def _cleared(run: UpgradeRun, name: str, version: str, steps: Sequence[str]) -> StepResult:
    """Execute steps without the clients of the GPUs. Then the clients of a node return, and a GPU
    pod runs."""
    cluster, settings = run.clusters.get(name), run.settings[name]
    try:
        round_ = cluster.clear(name, policy_of(settings)) if cluster else Round(drained=True)
        if round_.given_up:
            return StepResult(False, round_.given_up)
        if not round_.drained:
            return StepResult(False, f"pods do not end: {list_names(round_.reasons)}", busy=True)
        result, touched = StepResult(True), False
        if run.plan.subject == "reboot":
            steps = steps[:1]  # after a reboot no module must be loaded
        for step in steps:
            result = run.step(name, step, version)
            touched = touched or result.touched
            if not result.ok:
                return replace(result, touched=touched)
        if cluster is None:
            return result
        offers = offers_after(run.states[name], version)
        problem = cluster.check(name, settings.gpu_image, settings.node_timeout, offers)
    except ClusterProblem as error:
        return StepResult(False, passing_reason(error), silent=not is_final(error), touched=True)
    return StepResult(not problem, problem or cluster.unchecked.get(name, ""), touched=True)


def _without_image(run: UpgradeRun, name: str) -> str | None:
    """Why a drained node could not be checked, or "". None while that is not known: the image may
    not have been pulled before the drain, for lack of room or because of a restart."""
    cluster, settings = run.clusters.get(name), run.settings[name]
    if cluster is None or run.goes_back or name in cluster.has_image:
        return ""
    try:
        pull = cluster.pull(name, settings.gpu_image, settings.node_timeout)
    except ClusterProblem as error:
        reason = passing_reason(error)
        return None if run.waits(name, reason, run.silence(name)) else reason
    if pull.came == "there":
        return ""
    wait = min(settings.wait, run.timing.silence)
    passes = pull.came in PASSING_CONDITIONS and run.waits(name, pull.reason, wait)
    return None if passes else pull.reason


ACTS: dict[Do, Callable[[UpgradeRun, str], None]] = {
    Do.PREPARE: prepare_act,
    Do.CHANGE: change_act,
    Do.RESTORE: restore_act,
    Do.RETURN: give_back,
    Do.LEAVE: leave_act,
}
