"""The plan of a run: groups, canaries, waves, and who is left out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpufleet.upgrade.models import HostView, LeftOut, Limits, Plan, Planned, Wave, names
from gpufleet.upgrade.nodes import CORDONED, SKIPPED
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.shares import hosts_of
from gpufleet.upgrade.subjects import DISABLED, Subject

SAME = "already at {target}"
SKIP = "upgrade_skip is set"
NOTHING_THERE = "it is not installed: gpufleet apply installs it"
NEVER_A_GPU = "no GPU"  # nor a driver: a control plane, for example
NOTHING_MISSING = frozenset({NEVER_A_GPU, *DISABLED.values()})  # whatever else is said of the host
ON_PURPOSE = NOTHING_MISSING | {CORDONED, SKIPPED}


def make_plan(
    hosts: Sequence[HostView],
    settings: UpgradeSettings,
    skipped: Iterable[str] = (),
    subject: Subject = "driver",
) -> Plan:
    """The run over these hosts, in their order. `skipped`: names with upgrade_skip; `subject`: what
    it changes."""
    unwanted = frozenset(skipped)
    left = {host.name: reason for host in hosts if (reason := _reason(host, unwanted))}
    chosen = [host for host in hosts if host.name not in left]
    blocked = {host.name for host in hosts if host.name in left and _is_blocked(host, unwanted)}
    total = len(chosen)
    limits = Limits(
        max_unavailable=hosts_of(settings.max_unavailable, total),
        soak=settings.soak,
        max_failed=settings.max_failed,
        max_failed_in_a_row=settings.max_failed_in_a_row,
        window=settings.window,
        window_zone=settings.window_zone,
        alerts=settings.alerts,
        alerts_ignored=settings.alerts_ignored,
    )
    return Plan(
        hosts=tuple(_planned(host) for host in chosen),
        waves=_waves(chosen, settings, total),
        limits=limits,
        left_out=tuple(LeftOut(name, why, name in blocked) for name, why in left.items()),
        subject=subject,
    )


def _reason(host: HostView, unwanted: frozenset[str]) -> str:
    """Why a host is left out; "" if it is changed."""
    if host.name in unwanted:
        return SKIP
    if host.converged:
        return SAME.format(target=host.target)
    if host.refusals:
        return names(host.refusals, 3)
    return "" if host.before and host.target else NOTHING_THERE


def _is_blocked(host: HostView, unwanted: frozenset[str]) -> bool:
    """Whether a host that is left out should have the target: nobody decided against it."""
    if host.name in unwanted or host.converged or NOTHING_MISSING.intersection(host.refusals):
        return False
    return not host.refusals or not ON_PURPOSE.issuperset(host.refusals)


def _planned(host: HostView) -> Planned:
    assert host.before
    assert host.target
    return Planned(host.name, host.group, host.before, host.target)


def _waves(hosts: Sequence[HostView], settings: UpgradeSettings, total: int) -> tuple[Wave, ...]:
    """The canaries of all groups, then the others by place."""
    canaries: list[str] = []
    seen: dict[str, int] = {}
    for host in hosts:
        seen[host.group] = seen.get(host.group, 0) + 1
        if seen[host.group] <= settings.canaries:
            canaries.append(host.name)
    first = frozenset(canaries)
    rest: dict[str, list[str]] = {}
    for host in hosts:
        if host.name not in first:
            rest.setdefault(host.place, []).append(host.name)
    size = hosts_of(settings.wave, total)
    waves = [Wave(tuple(canaries), canary=True)] if canaries else []
    for group in rest.values():
        waves += [Wave(tuple(group[i : i + size])) for i in range(0, len(group), size)]
    return tuple(waves)


def reversed_plan(plan: Plan, changed: Sequence[str]) -> Plan:
    """The way back of the hosts that a run changed: each to the version that it had before."""
    wanted = frozenset(changed)
    hosts = [
        Planned(host.name, host.group, before=host.target, target=host.before)
        for host in plan.hosts
        if host.name in wanted
    ]
    waves = [
        Wave(tuple(name for name in wave.hosts if name in wanted), wave.canary)
        for wave in reversed(plan.waves)
    ]
    return Plan(
        hosts=tuple(hosts),
        waves=tuple(wave for wave in waves if wave.hosts),
        limits=plan.limits,
        kind="rollback",
        subject=plan.subject,
    )
