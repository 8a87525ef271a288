"""Hosts of a run that are taken out of service, and waited for until nothing uses their GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.upgrade.models import names
from gpufleet.upgrade.operations.children import Result
from gpufleet.upgrade.operations.cluster import ClusterNodes
from gpufleet.upgrade.operations.drain import Round
from gpufleet.upgrade.operations.hooks import STAYS
from gpufleet.upgrade.operations.run import Run, passing
from gpufleet.upgrade.pods import Policy
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import Event, State

ABORTED = "abort was requested"


def policy_of(settings: UpgradeSettings) -> Policy:
    """What is done with the pods of a node."""
    return Policy(
        every=settings.drain == "all",
        jobs=settings.jobs,
        empty_dir=settings.evict_empty_dir,
        unmanaged=settings.evict_unmanaged,
    )


def drain(run: Run, hosts: Sequence[str]) -> None:
    """One round: hosts are taken out of service, those that are idle are drained."""
    for name in hosts:
        if run.progress.states[name] is State.READY:
            run.write(Event.DRAIN_BEGAN, name)
    out = [name for name in hosts if is_out(run, name)]
    ready, moving = _evicted(run, out)
    seen = run.step("look", run.targets(ready))
    if run.stopping.is_set():
        return
    for name in ready:
        _judge(run, name, seen[name])
    idle = all(run.progress.states[name] is State.DRAINING for name in hosts)
    run.pause(idle=idle, moving=moving)


def is_out(run: Run, name: str) -> bool:
    """Whether the command that takes a host out of service has succeeded."""
    command = run.settings[name].drain_command
    if command is None:
        return True
    if name not in run.hooks.polled and not _started(run, name, command):
        return False
    result = run.hooks.polled[name].poll()
    if run.stopping.is_set():  # the run ends the command too
        return False
    if result == "":
        run.hooks.done(run.hooks.polled[name])
    if result:
        run.hooks.done(run.hooks.polled.pop(name))
        run.write(Event.NOT_DRAINED, name, f"upgrade_drain_command: {result}")
    return result == ""


def _started(run: Run, name: str, command: str) -> bool:
    """Start the command. It is written down first: what a process did before it was killed is to be
    taken back by upgrade_ready_command."""
    settings = run.settings[name]
    if name not in run.progress.commanded:
        run.write(Event.COMMAND_BEGAN, name)
    limit = settings.wait + settings.command_timeout
    try:
        run.hooks.polled[name] = run.hooks.start(command, name, limit)
    except InterruptedError:
        return False
    except OSError as error:
        run.write(Event.COMMAND_MISSING, name)
        run.write(Event.NOT_DRAINED, name, f"upgrade_drain_command: {error}")
        return False
    return True


def ready(run: Run, name: str) -> str:
    """Run the command that returns a host to service; why it failed, "" where it did not."""
    settings = run.settings[name]
    if settings.ready_command is None or not _was_taken(run, name):
        return ""
    return run.hooks.result(settings.ready_command, name, settings.command_timeout)


def _was_taken(run: Run, name: str) -> bool:
    """Whether the host may have been taken out of service: a command that could not even start has
    done nothing that is to be taken back."""
    return run.settings[name].drain_command is None or name in run.progress.commanded


def _evicted(run: Run, hosts: Sequence[str]) -> tuple[list[str], bool]:
    """Those of the hosts that no pod uses any more, or that are no nodes; and whether pods were
    evicted."""
    found = {name: Round(drained=True) for name in hosts if name not in run.clusters}
    by_cluster: dict[ClusterNodes, dict[str, Policy]] = {}
    for name in hosts:
        if name in run.clusters:
            policies = by_cluster.setdefault(run.clusters[name], {})
            policies[name] = policy_of(run.settings[name])

    def one(cluster: ClusterNodes) -> dict[str, Round]:
        try:
            return cluster.drain(by_cluster[cluster])
        except ClusterProblem as error:
            return {name: Round(reasons=[passing(error)]) for name in by_cluster[cluster]}

    for rounds in run.each(one, list(by_cluster)).values():
        found |= rounds
    ready = []
    for name in filter(found.__contains__, hosts):
        if found[name].given_up:
            run.write(Event.NOT_DRAINED, name, found[name].given_up)
        elif found[name].drained:
            ready.append(name)
        else:
            _waited(run, name, names(found[name].reasons, 3) or "pods are ending")
    return ready, any(each.evicted for each in found.values())


def _judge(run: Run, name: str, seen: Result) -> None:
    """Whether a host is idle, or has been waited for long enough."""
    work = [str(each) for each in seen.plan.get("work") or ()]
    if seen.ok and not work:
        run.write(Event.DRAINED, name)
    else:
        _waited(run, name, f"GPU work: {names(work)}" if seen.ok else seen.reason)


def _waited(run: Run, name: str, reason: str) -> None:
    """Give a host up that was waited for long enough."""
    if not run.may_wait(name, reason):
        run.write(Event.NOT_DRAINED, name, reason)


def leave(run: Run, hosts: Sequence[str]) -> None:
    """Give up drains, and hosts that were drained and are not changed yet."""
    for name in hosts:
        why = ABORTED
        if hook := run.hooks.polled.pop(name, None):
            hook.end()
            run.hooks.done(hook)
            why += f"; upgrade_drain_command: {STAYS}" if hook.stays else ""
        drained = run.progress.states[name] is State.DRAINED
        run.write(Event.NOT_REACHED if drained else Event.NOT_DRAINED, name, why)
