"""What a run does next, by its record, the time, and what was requested. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from gpufleet.core.names import counted
from gpufleet.upgrade.models import names
from gpufleet.upgrade.progress import Progress
from gpufleet.upgrade.states import ENDED, State
from gpufleet.upgrade.window import Window

UNRETURNED = "unreturned"  # hosts could not be returned; the others are finished
AGAIN = 60.0  # seconds to the next look at alerts, and at nodes that are not Ready


class Do(str, Enum):
    """What is done with hosts."""

    PREPARE = "prepare"
    DRAIN = "drain"
    CHANGE = "change"
    RESTORE = "roll back"
    RETURN = "return"
    LEAVE = "leave"  # end the drain: they go back as they are


@dataclass(frozen=True, slots=True)
class Act:
    """One step with hosts, side by side."""

    do: Do
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing until then, by the clock of the record."""

    until: float
    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """The process ends; `event`: finished, stopped, paused, aborted, or UNRETURNED."""

    event: str
    reason: str = ""


Decision = Act | Wait | End


@dataclass(frozen=True, slots=True)
class Around:
    """What a run does not decide. `now`: by the clock of the record; `wall`: the time of day, where
    that is another; `request`: "pause", "abort" or ""; `away`: nodes that others, or a fault, have
    taken out of service; `behind`: nodes that earlier runs left behind; `alerts`: that fire;
    `reboots`: nodes that kured is at work on;
    `silent`: why a cluster does not answer; `unreturned`: hosts that could not be returned;
    `tried`: hosts that the last steps left where they were: it is the turn of others."""

    now: float
    wall: float | None = None
    request: str = ""
    away: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()
    reboots: tuple[str, ...] = ()
    silent: str = ""
    unreturned: tuple[str, ...] = ()
    tried: frozenset[str] = frozenset()

    @property
    def day(self) -> float:
        return self.now if self.wall is None else self.wall


def decide(progress: Progress, around: Around) -> Decision:
    """What was changed is finished first, whatever was requested:
    nothing stays out of service, and nothing that was changed stays unchecked. Only a drain, which
    waits for others, goes on beside hosts that are begun. What waits takes turns."""
    aborts = around.request == "abort"
    if aborts and (unchanged := progress.of(State.DRAINING, State.DRAINED)):
        return Act(Do.LEAVE, tuple(unchanged))
    draining = tuple(progress.of(State.DRAINING))
    if begun := _of_begun(progress, around.unreturned):
        acts = [*begun, Act(Do.DRAIN, draining)] if draining else begun
        return _turn(acts, around)
    if around.unreturned:
        return Act(Do.DRAIN, draining) if draining else End(UNRETURNED)
    following = _of_new(progress, around)
    if not draining:
        return following
    if not isinstance(following, Act):
        return Act(Do.DRAIN, draining)
    if following.do is Do.DRAIN:
        return Act(Do.DRAIN, (*draining, *following.hosts))
    return _turn([following, Act(Do.DRAIN, draining)], around)


def _turn(acts: Sequence[Act], around: Around) -> Act:
    """The first of them whose turn has come."""
    return next((act for act in acts if not around.tried.issuperset(act.hosts)), acts[0])


def _of_begun(progress: Progress, without: tuple[str, ...]) -> list[Act]:
    """The steps of hosts that were begun, the most urgent first."""
    found = []
    for states, do in (
        ((State.CHANGED, State.RESTORED, State.LEAVING, State.UNCHANGED), Do.RETURN),
        ((State.DRAINED, State.CHANGING), Do.CHANGE),
        ((State.FAILED, State.RESTORING), Do.RESTORE),  # it may wait for the end of GPU work
    ):
        hosts = [name for name in progress.of(*states) if name not in without]
        if hosts:
            found.append(Act(do, tuple(hosts)))
    return found


def _of_new(progress: Progress, around: Around) -> Decision:
    """The step of hosts that nothing was done with yet."""
    if around.request == "abort":
        return End("aborted", "abort was requested")
    if reason := _budget(progress):
        return End("stopped", reason)
    if all(state in ENDED for state in progress.states.values()):
        return End("finished")
    if around.request == "pause":
        return End("paused", "pause was requested")
    lost = progress.lost_groups()
    for number, wave in enumerate(progress.plan.waves):
        left = [
            name
            for name in wave.hosts
            if progress.states[name] not in ENDED and progress.plan.by_name[name].group not in lost
        ]
        if left:
            return _of_wave(progress, number, left, around)
    return End("stopped", f"the canary failed: {names(sorted(lost))}")


def _budget(progress: Progress) -> str:
    """Why no further host may be begun; "" if one may."""
    limits = progress.plan.limits
    if progress.failures >= limits.max_failed:
        return f"{counted(progress.failures, 'host')} failed (upgrade_max_failed)"
    if progress.in_a_row >= limits.max_failed_in_a_row:
        return f"{counted(progress.in_a_row, 'host')} failed in a row (upgrade_max_failed_in_a_row)"
    return ""


def _of_wave(progress: Progress, number: int, left: list[str], around: Around) -> Decision:
    now = around.now
    begun = [name for name in progress.plan.waves[number].hosts if _is_begun(progress, name)]
    if not begun and (until := _soaked(progress, number)) > now:
        return Wait(until, "soak")
    fresh = [name for name in left if progress.states[name] in (State.WAITING, State.READY)]
    free, until = fresh, now
    if not progress.plan.waves[number].canary:
        free, until = _of_proven_groups(progress, fresh, now)
    if not free:
        return Wait(until, "soak")
    if window := _closed(progress, around):
        return window
    return _begin(progress, free, around)


def _is_begun(progress: Progress, name: str) -> bool:
    return progress.states[name] is not State.WAITING


def _of_proven_groups(progress: Progress, fresh: list[str], now: float) -> tuple[list[str], float]:
    """Those of the hosts whose group has one that was changed and has soaked; of a group without
    one, because its canary was passed over, one host at a time. Else when the first has soaked."""
    free: list[str] = []
    later: list[float] = []
    proofs = progress.first_done()
    tried = {progress.plan.by_name[name].group for name in progress.at_work}
    for name in fresh:
        group = progress.plan.by_name[name].group
        proof = proofs.get(group)
        if proof is not None:
            ready = proof + progress.plan.limits.soak
            if ready <= now:
                free.append(name)
            else:
                later.append(ready)
        elif group not in tried:
            tried.add(group)
            free.append(name)
    return free, min(later, default=now)


def _begin(progress: Progress, free: list[str], around: Around) -> Decision:
    """Prepare hosts, then drain them; one that cannot be prepared now keeps no other waiting."""
    waiting = tuple(name for name in free if progress.states[name] is State.WAITING)
    ready = [name for name in free if name not in waiting]
    if waiting and not (ready and around.tried.issuperset(waiting)):
        return Act(Do.PREPARE, waiting)
    following = _drain(progress, ready, around)
    return Act(Do.PREPARE, waiting) if waiting and isinstance(following, Wait) else following


def _drain(progress: Progress, ready: list[str], around: Around) -> Decision:
    if around.silent:
        return Wait(around.now + AGAIN, f"cluster: {around.silent}")
    if around.alerts:
        return Wait(around.now + AGAIN, f"end of alerts: {names(around.alerts)}")
    if around.reboots:
        return Wait(around.now + AGAIN, f"reboots of kured: {names(around.reboots)}")
    room = progress.plan.limits.max_unavailable - progress.out_of_service - len(around.behind)
    left = room - len(around.away)
    if left > 0:
        return Act(Do.DRAIN, tuple(ready[:left]))
    if room > 0:
        return Wait(around.now + AGAIN, f"nodes that are not Ready: {names(around.away)}")
    stuck = names([*progress.of(State.STUCK), *around.behind])
    return End("stopped", f"left behind out of service: {stuck} (upgrade_max_unavailable)")


def _soaked(progress: Progress, wave: int) -> float:
    """When the waves before this one have soaked; 0 if no host was changed in them."""
    ends = [
        progress.since[name]
        for earlier in progress.plan.waves[:wave]
        for name in earlier.hosts
        if progress.states[name] is State.DONE
    ]
    return max(ends) + progress.plan.limits.soak if ends else 0.0


def _closed(progress: Progress, around: Around) -> Wait | None:
    limits = progress.plan.limits
    if limits.window is None:
        return None
    window = Window.parse(limits.window, limits.window_zone)
    if window.is_open(around.day):
        return None
    until = around.now + window.opens(around.day) - around.day
    return Wait(until, f"window {limits.window} {limits.window_zone}")
