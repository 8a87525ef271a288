"""Hosts of a run that are taken out of service, and waited for until nothing uses their GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from gpufleet.core.stopped import Stopped
from gpufleet.upgrade.models import names
from gpufleet.upgrade.operations.children import Result
from gpufleet.upgrade.operations.evictions import Round
from gpufleet.upgrade.operations.hooks import STAYS
from gpufleet.upgrade.operations.run import Run
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


def text_of(error: Stopped) -> str:
    return "; ".join(f"{each.code} {each.message}" for each in error.findings)


def drain(run: Run, hosts: Sequence[str]) -> None:
    """One round: hosts are taken out of service, those that are idle are drained."""
    for name in hosts:
        if run.progress.states[name] is State.READY:
            run.write(Event.DRAIN_BEGAN, name)
    out = [name for name in hosts if is_out(run, name)]
    ready = _evicted(run, out)
    seen = run.step("look", run.targets(ready))
    if run.stopping.is_set():
        return
    for name in ready:
        _judge(run, name, seen[name])
    run.pause(idle=all(run.progress.states[name] is State.DRAINING for name in hosts))


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


def _evicted(run: Run, hosts: Sequence[str]) -> list[str]:
    """Those of the hosts that no pod uses any more, or that are no nodes."""

    def one(name: str) -> Round:
        cluster = run.clusters.get(name)
        if cluster is None:
            return Round(drained=True)
        try:
            return cluster.drain(name, policy_of(run.settings[name]))
        except Stopped as error:
            return Round(reasons=[text_of(error)])

    ready = []
    for name, found in run.each(one, hosts).items():
        if found.given_up:
            run.write(Event.NOT_DRAINED, name, found.given_up)
        elif found.drained:
            ready.append(name)
        else:
            _waited(run, name, names(found.reasons, 3) or "pods are ending")
    return ready


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
