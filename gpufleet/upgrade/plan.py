"""Plans a new run (groups, canaries, waves, hosts left out), or continues an unfinished one.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpufleet.core.names import list_names
from gpufleet.core.stopped import Stopped
from gpufleet.core.versions import version_tuple
from gpufleet.drain.nodes import CORDONED, SKIPPED_BY_LABEL
from gpufleet.driver.findings import choice as driver
from gpufleet.driver.findings.host import MIG_DEVICES
from gpufleet.host.upgrade_settings import Subject, UpgradeSettings
from gpufleet.host.upgrade_state import HostState, Kind, Phase
from gpufleet.toolkit.findings import choice as toolkit
from gpufleet.upgrade.findings import runs as findings
from gpufleet.upgrade.findings.hosts import DOWNGRADE
from gpufleet.upgrade.models import HostView, LeftOut, Plan
from gpufleet.upgrade.settings import share_of_hosts
from gpufleet.upgrade.subjects import DISABLED

SAME = "already at {target}"
SKIP_REASON = "upgrade_skip is set"
NOTHING_THERE = "it is not installed: gpufleet apply installs it"
NEVER_A_GPU = "no GPU"  # and no driver: for example a control plane node
NOT_A_MEMBER = "not in run {run}: run the command again after it"
NOT_CHANGED = "run {run} did not change it"
STUCK_REASON = "its roll-back failed: repair it, then run `gpufleet upgrade release`"
NOTHING_MISSING = frozenset({NEVER_A_GPU, *DISABLED.values()})  # never counts as blocked
NEVER = frozenset(
    kind.code
    for kind in (
        *(driver.NOT_INSTALLABLE, driver.NO_DRIVER),
        *(toolkit.TOOLKIT_REFUSED, toolkit.TOOLKIT_ARCHITECTURE),
    )
)  # a host's system or GPUs cannot have the target
ON_PURPOSE = NOTHING_MISSING | {CORDONED, SKIPPED_BY_LABEL}


def make_plan(
    views: Sequence[HostView],
    settings: UpgradeSettings,
    skipped: Iterable[str] = (),
    subject: Subject = "driver",
    kind: Kind = "upgrade",
    *,
    name: str,
    ends: bool = False,
) -> Plan:
    """The unfinished run over these hosts, or a new one of that name, in the order of the hosts.
    `skipped`: names with upgrade_skip; `ends`: abort, for any target. Raises Stopped if the
    unfinished run has another target."""
    unwanted = frozenset(skipped)
    spared = unwanted | _that_cannot(views, unwanted)
    unfinished = {view.name: state for view in views if (state := view.unfinished)}
    targets = {} if ends or kind == "rollback" else {view.name: view.target for view in views}
    for host, state in unfinished.items():
        wanted = (subject, kind, targets.get(host) or state.target)
        if (state.subject, state.kind, state.target) != wanted:
            what = f"{state.kind} of the {state.subject}"
            raise Stopped(
                findings.RUN_UNFINISHED(run=state.run, host=host, what=what, target=state.target)
            )
    runs = {state.run for state in unfinished.values()}
    run = min(runs, default=name)
    members = {v.name: v.state for v in views if v.state and v.state.run in runs}
    reasons = {view.name: _reason(view, unwanted) for view in views}
    if any(state.phase is not Phase.WAITING for state in members.values()):
        if away := [view for view in views if view.unplaced and view.name in members]:
            hosts_away = list_names([view.name for view in away])
            raise Stopped(findings.NODE_AWAY(run=run, hosts=hosts_away, problem=away[0].unplaced))
        hosts = {n: replace(state, run=run) for n, state in _in_order(members.items())}
    else:
        chosen = [view for view in views if not reasons[view.name]]
        hosts = _new_hosts(chosen, settings, run, subject, kind)
        members = {}
    other = NOT_A_MEMBER.format(run=run)
    outside = [view for view in views if view.name not in hosts]
    left = [LeftOut(v.name, reasons[v.name] or other, _is_blocked(v, spared)) for v in outside]
    most = share_of_hosts(settings.max_unavailable, len(hosts))
    return Plan(
        run=run,
        kind=kind,
        subject=subject,
        hosts=hosts,
        limits=settings.model_copy(update={"max_unavailable": most}),
        left_out=tuple(left),
        unreached=tuple(v.name for v in views if not v.reached and v.name not in unwanted),
        behind=tuple(v.name for v in views if v.left_behind and v.name not in hosts),
        resumed=bool(members),
    )


def views_to_return(views: Sequence[HostView]) -> list[HostView]:
    """The hosts for a roll-back of the newest run: each has its earlier version as target. Raises
    Stopped if there is nothing to roll back."""
    if any(view.unfinished for view in views):
        return list(views)
    run = newest_changed({view.name: view.state for view in views if view.state}).run
    found = []
    for view in views:
        state = view.state
        if not view.reached:
            found.append(view)
        elif state and state.phase is Phase.STUCK:
            found.append(replace(view, target=None, refusals=(STUCK_REASON,)))
        elif state is None or state.run != run or not _is_changed(state):
            found.append(replace(view, target=None, refusals=(NOT_CHANGED.format(run=run),)))
        elif view.before != state.target:
            other = findings.CHANGED_SINCE_PLAN(target=state.target, found=view.before or "nothing")
            found.append(replace(view, refusals=(other.text,)))
        else:
            lost = tuple(each for each in view.refusals if code_of(each) == MIG_DEVICES.code)
            found.append(
                replace(view, target=state.before, loaded=None, refusals=lost, warnings=())
            )
    return found


def without_downgrade(view: HostView) -> HostView:
    """The host, refused if its target is older than its installed version."""
    before, target = view.before, view.target
    if before and target and version_tuple(target) < version_tuple(before):
        found = DOWNGRADE(target=target, before=before)
        return replace(view, refusals=(*view.refusals, found.text))
    return view


def left_behind(views: Iterable[HostView]) -> dict[str, HostView]:
    """The hosts that earlier runs left out of service. Raises Stopped if no host is."""
    found = {view.name: view for view in views if view.left_behind}
    if not found:
        raise Stopped(findings.NOTHING_TO_RELEASE())
    return found


def newest_changed(states: Mapping[str, HostState]) -> HostState:
    """A host of the run to roll back: the unfinished roll-back, else the newest run that changed
    something. `states`: by host. Raises Stopped."""
    unfinished = [s for s in states.values() if s.kind == "rollback" and not s.ended]
    changed = unfinished or [state for state in states.values() if _is_changed(state)]
    if not changed:
        stuck = [name for name, state in states.items() if state.phase is Phase.STUCK]
        one = findings.ONLY_STUCK(hosts=list_names(stuck)) if stuck else None
        raise Stopped(one or findings.NOTHING_TO_RETURN())
    return max(changed, key=lambda state: state.since)


def _is_changed(state: HostState) -> bool:
    changed = state.before != state.target and state.phase is Phase.DONE
    return changed and state.kind == "upgrade" and state.subject != "reboot"


def _that_cannot(views: Sequence[HostView], unwanted: frozenset[str]) -> frozenset[str]:
    """Hosts whose system or GPUs cannot have the target. Empty if no other host can have it."""
    asked = [view for view in views if view.name not in unwanted]
    cannot = [v.name for v in asked if v.refusals and NEVER.issuperset(map(code_of, v.refusals))]
    others = any(view.converged or not view.refusals for view in asked)
    return frozenset(cannot if others else ())


def code_of(refusal: str) -> str:
    return refusal.partition(" ")[0]


def _reason(host: HostView, unwanted: frozenset[str]) -> str | None:
    """Why a host is left out, or None if it is part of the run. A host that an earlier run left out
    of service is part of the run even at the target version: it is checked and returned."""
    if host.name in unwanted:
        return SKIP_REASON
    if host.converged and not host.left_behind:
        return SAME.format(target=host.target)
    if host.refusals:
        return ", ".join(host.refusals)
    return None if host.before and host.target else NOTHING_THERE


def _is_blocked(host: HostView, spared: frozenset[str]) -> bool:
    """True if a host that is left out should have the target, because no user excluded it."""
    if host.name in spared or host.converged or NOTHING_MISSING.intersection(host.refusals):
        return False
    if host.refusals and host.refusals[0].startswith(NOT_CHANGED.partition("{")[0]):
        return False
    return not host.refusals or not ON_PURPOSE.issuperset(host.refusals)


def _new_hosts(
    views: Sequence[HostView], settings: UpgradeSettings, run: str, subject: Subject, kind: Kind
) -> dict[str, HostState]:
    numbers = _wave_numbers(views, settings)
    if kind == "rollback":  # in reverse order
        known = {v.name: v.state.wave for v in views if v.state}
        last = max(known.values(), default=0)
        numbers = {name: last - known.get(name, 0) for name in numbers}
    found = {}
    for view in views:
        assert view.before
        assert view.target
        group = view.state.group if kind == "rollback" and view.state else view.group
        wave, out = numbers[view.name], view.left_behind
        found[view.name] = HostState(
            run, kind, subject, view.before, view.target, group[:200], wave, out=out, behind=out
        )
    return dict(_in_order(found.items()))


def _in_order(hosts: Iterable[tuple[str, HostState]]) -> list[tuple[str, HostState]]:
    return sorted(hosts, key=lambda item: item[1].wave)


def _wave_numbers(hosts: Sequence[HostView], settings: UpgradeSettings) -> dict[str, int]:
    """The canaries of all groups are wave 0. The other hosts follow by place."""
    found: dict[str, int] = {}
    seen: dict[str, int] = {}
    rest: dict[str, list[str]] = {}
    for host in hosts:
        seen[host.group] = seen.get(host.group, 0) + 1
        if seen[host.group] <= settings.canaries:
            found[host.name] = 0
        else:
            rest.setdefault(host.place, []).append(host.name)
    size, number = share_of_hosts(settings.wave, len(hosts)), 0
    for group in rest.values():
        for start in range(0, len(group), size):
            number += 1
            found |= dict.fromkeys(group[start : start + size], number)
    return found
