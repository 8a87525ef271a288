"""Decides the next act on each host from the hosts' states, the time and the user's request.
Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from gpufleet.core.names import count_noun, list_names
from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.host.upgrade_state import FAILING, OPEN, RETURNED, WORKING_PHASES, HostState, Phase
from gpufleet.host.window import Window

ABORT_REQUESTED = "abort was requested"
RECHECK_SECONDS = 60.0  # seconds until alerts and NotReady nodes are checked again


class Do(str, Enum):
    """An act on a host."""

    PREPARE = "prepare"
    DRAIN = "drain"
    CHANGE = "change"
    RESTORE = "roll back"
    RETURN = "return"
    LEAVE = "leave"  # end the drain: the host returns unchanged, and may be begun again
    PASS = "pass"  # do not begin the host


@dataclass(frozen=True, slots=True)
class Host:
    """The current state of a host. `ours`: its node has our cordon; `idle`: nothing uses its GPUs;
    `busy`: an act on it runs; `due`: no act on it runs, and the next try is due; `reached`: it
    answers, as far as known; `given_up`: this process does nothing more with it."""

    name: str
    state: HostState
    ours: bool = False
    idle: bool = False
    busy: bool = False
    due: bool = True
    reached: bool = True
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """The situation outside the hosts of the run. `asked`: "pause", "abort" or ""; `unreached`:
    hosts that may be out of service; `away`: nodes that are out of service for another reason;
    `behind`: nodes that earlier runs left out of service; `alerts`: firing alerts; `reboots`: nodes
    that kured reboots; `silent`: why a cluster does not answer."""

    now: float
    asked: str = ""
    unreached: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()
    reboots: tuple[str, ...] = ()
    silent: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Acts to begin now, and the reason and end of a wait. Without acts and wait, the process ends
    for the reason `end`."""

    acts: dict[str, Do] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)  # of PASS
    waits: str = ""
    until: float = 0.0
    end: str = "finished"


def decide_acts(hosts: Sequence[Host], limits: UpgradeSettings, around: Around) -> Decision:
    """The next acts. Begun hosts are finished first, whatever the user asks: no host stays out of
    service, and no changed host stays unchecked."""
    acts = {h.name: do for h in hosts if h.reached and (do := _of_begun(h, around.asked)) and h.due}
    waiting = [host for host in hosts if host.state.phase in OPEN and not host.given_up]
    if around.asked == "pause":
        return Decision(acts, end="paused" if waiting else "finished")
    if not around.asked and any(host.given_up for host in hosts):
        return Decision(acts, end="hosts could not be finished")
    lost = _lost_groups(hosts)
    halt = ABORT_REQUESTED if around.asked == "abort" else _spent(hosts, limits)
    why = {host.name: halt for host in waiting if halt}
    why |= {h.name: "the canary of its group failed" for h in waiting if h.state.group in lost}
    acts |= {host.name: Do.PASS for host in waiting if host.name in why and host.due}
    if halt:
        return Decision(acts, why, end="aborted" if around.asked else f"stopped: {halt}")
    fresh = [host for host in waiting if host.name not in why]
    if not fresh:
        failed = [h.name for h in hosts if h.state.phase in FAILING and h.state.wave == 0]
        end = f"stopped: a canary failed: {list_names(failed)}" if failed else "finished"
        return Decision(acts, why, end=end)
    following = _of_first_wave(hosts, fresh, limits, around)
    return replace(following, acts={**acts, **following.acts}, why={**why, **following.why})


def _of_begun(host: Host, asked: str) -> Do | None:
    """The next step of a host that was begun."""
    phase = host.state.phase
    if host.given_up:
        return None
    if phase is Phase.DRAINING:
        return Do.LEAVE if asked else Do.CHANGE if host.idle else Do.DRAIN
    if phase is Phase.CHANGING:
        return Do.CHANGE
    if phase is Phase.RESTORING:
        return Do.RESTORE
    return Do.RETURN if phase in RETURNED and (host.state.out or host.ours) else None


def _lost_groups(hosts: Sequence[Host]) -> frozenset[str]:
    """Groups whose canary failed, or where a host failed before any other was changed."""
    proven = {host.state.group for host in hosts if host.state.phase is Phase.DONE}
    bad = [host.state for host in hosts if host.state.phase in FAILING]
    return frozenset(s.group for s in bad if _is_canary(s) or s.group not in proven)


def _is_canary(state: HostState) -> bool:
    return state.wave == 0 and state.kind == "upgrade"


def _spent(hosts: Sequence[Host], limits: UpgradeSettings) -> str | None:
    """Why the failure budget allows no further host, or None."""
    failing = [host for host in hosts if host.state.phase in FAILING]
    if len(failing) >= limits.max_failed:
        return f"{count_noun(len(failing), 'host')} failed (upgrade_max_failed)"
    judged = [h for h in hosts if h in failing or h.state.phase is Phase.DONE]
    row = 0
    for host in sorted(judged, key=lambda host: host.state.since):
        row = row + 1 if host in failing else 0
    if row >= limits.max_failed_in_a_row:
        return f"{count_noun(row, 'host')} failed in a row (upgrade_max_failed_in_a_row)"
    return None


def _of_first_wave(
    hosts: Sequence[Host], fresh: Sequence[Host], limits: UpgradeSettings, around: Around
) -> Decision:
    """The next acts on the hosts of the first unfinished wave."""
    lost, unfinished = _lost_groups(hosts), OPEN | WORKING_PHASES
    left = [h for h in hosts if h.state.phase in unfinished and h.state.group not in lost]
    number = min(host.state.wave for host in left)
    mine = [host for host in fresh if host.state.wave == number]
    if not mine:
        return Decision(end="a wave is at work")
    members = [host for host in hosts if host.state.wave == number]
    done = {h.name: min(h.state.since, around.now) for h in hosts if h.state.phase is Phase.DONE}
    if all(host.state.phase is Phase.WAITING for host in members):
        earlier = [done[h.name] for h in hosts if h.state.wave < number and h.name in done]
        if earlier and (until := max(earlier) + limits.soak) > around.now:
            return Decision(waits="soak", until=until)
    free, until = mine, 0.0
    if not _is_canary(mine[0].state):
        free, until = _of_proven_groups(hosts, mine, done, limits.soak, around.now)
    if not free:
        return Decision(waits="soak", until=until)
    if limits.window is not None:
        window = Window.parse(limits.window, limits.window_zone)
        if not window.is_open(around.now):
            text = f"window {limits.window} {limits.window_zone}"
            return Decision(waits=text, until=window.opens(around.now))
    return _begun(hosts, free, limits, around)


def _of_proven_groups(
    hosts: Sequence[Host], mine: Sequence[Host], done: dict[str, float], soak: int, now: float
) -> tuple[list[Host], float]:
    """The hosts that may begin: their group has a changed host that has soaked. A group without
    one, because its canary was passed over, begins one host at a time. The second value is the time
    when the next group has soaked."""
    proofs: dict[str, float] = {}
    for host in hosts:
        if host.name in done:
            group = host.state.group
            proofs[group] = min(proofs.get(group, done[host.name]), done[host.name])
    tried = {host.state.group for host in hosts if host.state.phase in WORKING_PHASES}
    free: list[Host] = []
    later: list[float] = []
    for host in mine:
        group = host.state.group
        if group in proofs:
            if proofs[group] + soak <= now:
                free.append(host)
            else:
                later.append(proofs[group] + soak)
        elif group not in tried:
            tried.add(group)
            free.append(host)
    return free, min(later, default=now + RECHECK_SECONDS)


def _begun(
    hosts: Sequence[Host], free: Sequence[Host], limits: UpgradeSettings, around: Around
) -> Decision:
    """Prepare hosts, then drain them. A host that cannot be prepared now does not delay others."""
    acts = {h.name: Do.PREPARE for h in free if h.state.phase is Phase.WAITING and h.due}
    turn = _canaries_in_turn(free) if _is_canary(free[0].state) else free
    ready = [host for host in turn if host.state.phase is Phase.PREPARED and host.due]
    if not ready:
        return Decision(acts, end="hosts are prepared")
    again = around.now + RECHECK_SECONDS
    if around.silent:
        return Decision(acts, waits=f"cluster: {around.silent}", until=again)
    if around.alerts:
        return Decision(acts, waits=f"end of alerts: {list_names(around.alerts)}", until=again)
    if around.reboots:
        held = (
            f"lock of kured, an annotation of its DaemonSet, held by {list_names(around.reboots)}"
        )
        return Decision(acts, waits=held, until=again)
    drained = [host for host in ready if host.state.out]  # already out of service
    out = [h.name for h in hosts if h.state.out_of_service or not h.reached or _is_begun(h)]
    room = int(limits.max_unavailable) - len({*out, *around.unreached, *around.behind})
    left = room - len(around.away)
    others = [host for host in ready if host not in drained]
    acts |= {host.name: Do.DRAIN for host in [*drained, *others[: max(left, 0)]]}
    if Do.DRAIN in acts.values():
        return Decision(acts)
    if room > 0:
        text = f"nodes that are not Ready: {list_names(around.away)}"
        return Decision(acts, waits=text, until=again)
    return _without_room(hosts, ready, acts, around)


def _canaries_in_turn(canaries: Sequence[Host]) -> Sequence[Host]:
    """The canaries before the first one that is being prepared. The plan decides which canary is
    changed first, not the speed of its download."""
    for place, host in enumerate(canaries):
        if host.state.phase is Phase.WAITING and (host.busy or host.due):
            return canaries[:place]
    return canaries


def _is_begun(host: Host) -> bool:
    """True if a host is being taken out of service but has not yet recorded that."""
    return host.state.phase is Phase.PREPARED and not host.due


def _without_room(
    hosts: Sequence[Host], ready: Sequence[Host], acts: dict[str, Do], around: Around
) -> Decision:
    """No host may begin: hosts at work or left out of service use up upgrade_max_unavailable."""
    if any((_of_begun(host, "") or _is_begun(host)) and host.reached for host in hosts):
        return Decision(acts, end="hosts are at work")
    silent = [*around.unreached, *(host.name for host in hosts if not host.reached)]
    if silent:
        how = "upgrade_max_unavailable counts them; --limit or upgrade_skip leaves them out"
        return Decision(acts, end=f"no answer: {list_names(silent)}: {how}")
    stuck = [host.name for host in hosts if host.state.phase is Phase.STUCK]
    left = list_names([*stuck, *around.behind])
    why = f"left behind out of service: {left} (upgrade_max_unavailable)"
    passed = {h.name: Do.PASS for h in hosts if h.state.phase in OPEN and h.due}
    return Decision({**acts, **passed}, dict.fromkeys(passed, why), end=f"stopped: {why}")
