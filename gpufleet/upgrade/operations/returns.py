"""Ends of a host's part in a run: it is passed over, left behind or returned to service."""

from __future__ import annotations

from gpufleet.host.upgrade_state import Phase
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.kube.operations.refused import is_final
from gpufleet.upgrade.decide import ABORT_REQUESTED
from gpufleet.upgrade.findings.nodes import NODE_REFUSED
from gpufleet.upgrade.findings.runs import COMMAND_FAILED
from gpufleet.upgrade.operations.hooks import run_command
from gpufleet.upgrade.operations.run import UpgradeRun, passing_reason


def pass_over(run: UpgradeRun, name: str, why: str) -> None:
    """Leave a host unchanged. One that an earlier run left behind stays out of service."""
    if run.states[name].behind:
        run.write(name, Phase.STUCK, why)
        leave_behind(run, name)
    else:
        run.write(name, Phase.PASSED, why)


def leave_behind(run: UpgradeRun, name: str) -> None:
    """Write to the host's node why it stays out of service. May be repeated."""
    if name in run.clusters:
        try:
            run.clusters[name].leave_behind(name, run.states[name].why)
        except ClusterProblem as error:
            run.say(f"{name}: its node has no mark of its failure: {passing_reason(error)}")


def leave_act(run: UpgradeRun, name: str) -> None:
    """Give up a drain. The host is begun again after a pause."""
    run.idle.discard(name)
    if run.asked == "abort":
        pass_over(run, name, ABORT_REQUESTED)
    elif run.states[name].behind:
        run.write(name, Phase.PREPARED)
    else:
        give_back(run, name, Phase.PREPARED)


def give_back(run: UpgradeRun, name: str, phase: Phase | None = None) -> None:
    """Return a host to service, in its phase or in another one. If its cluster refuses or the
    command fails, the other hosts are finished first and the next process tries again. An abort
    ignores the command."""
    cluster, settings, said = run.clusters.get(name), run.settings[name], ""
    if cluster is not None:
        try:
            said = cluster.give_back(name)
        except ClusterProblem as error:
            reason = passing_reason(error)
            if is_final(error):
                run.given_up[name] = NODE_REFUSED(host=name, reason=reason)
                run.say(f"{name}: its node is not returned: {reason}")
            else:
                run.later(name, reason)
            return
    taken = settings.drain_command is None or run.states[name].commanded
    if settings.ready_command is not None and taken:
        problem = run_command(settings.ready_command, name, settings.command_timeout)
        if problem and run.asked != "abort":
            found = COMMAND_FAILED(key="upgrade_ready_command", host=name, problem=problem)
            run.given_up[name] = found
            run.say(f"{name}: upgrade_ready_command: {problem}")
            return
        said = f"without its upgrade_ready_command: {problem}" if problem else said
    run.commanded.discard(name)
    why = "; ".join(filter(None, (said, run.states[name].why))) if said else ""
    run.write(name, phase or run.states[name].phase, why, out=False, commanded=False)
