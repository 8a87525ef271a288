"""Reads the hosts, their nodes and an unfinished run before the first change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar

from gpufleet.core.load_settings import load_role
from gpufleet.core.stopped import Stopped
from gpufleet.drain.pods import Leaving
from gpufleet.host.settings import HostSettings
from gpufleet.host.upgrade_settings import Subject, UpgradeSettings
from gpufleet.host.upgrade_state import HostState, Kind, Phase
from gpufleet.kube.operations.access import KubeAccess
from gpufleet.upgrade.findings import runs as findings
from gpufleet.upgrade.models import HostView, LeftOut, Plan
from gpufleet.upgrade.operations.acts import policy_of
from gpufleet.upgrade.operations.clusters import NodeAt, find_nodes, leaving_pods
from gpufleet.upgrade.operations.result import StepResult
from gpufleet.upgrade.plan import (
    left_behind,
    make_plan,
    newest_changed,
    views_to_return,
    without_downgrade,
)
from gpufleet.upgrade.settings import load_upgrade_settings, of_run
from gpufleet.upgrade.show import Status
from gpufleet.upgrade.subjects import WantedChange

LOOKS, PAUSE = 6, 1.0  # tries at a lock whose process may have just ended; seconds between them

T = TypeVar("T")


class Reader(Protocol):
    """Reads hosts."""

    subject: Subject

    def each(self, call: Callable[[str], T], names: Iterable[str]) -> dict[str, T]: ...

    def look(self, name: str, version: str = "", branch: str = "") -> StepResult: ...

    def read(self, name: str) -> Status: ...

    def write(self, name: str, state: HostState) -> None: ...


@dataclass(frozen=True, slots=True)
class UpgradeTarget:
    """A host of the inventory. `known_as`: names and addresses by which it is reached."""

    name: str
    data: Mapping[str, Any]
    known_as: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A planned run."""

    plan: Plan
    settings: Mapping[str, UpgradeSettings]
    places: Mapping[str, NodeAt]
    work: Mapping[str, Sequence[str]] = field(default_factory=dict)  # on the GPUs
    leaving: Mapping[str, Leaving] = field(default_factory=dict)  # pods of its nodes
    warnings: Mapping[str, Sequence[str]] = field(default_factory=dict)  # about targets
    reboots: Mapping[str, str] = field(default_factory=dict)  # node_reboot for the steps


def read_run_hosts(
    targets: Sequence[UpgradeTarget],
    reader: Reader,
    wanted: WantedChange,
    accesses: Sequence[KubeAccess],
    kind: Kind = "upgrade",
    *,
    name: str,
    ends: bool = False,
    release: bool = False,
) -> PlannedRun:
    """The unfinished run over these hosts, or a new one. `name`: of a new run; `ends`: see
    make_plan; `release`: only check hosts that earlier runs left behind and return them, with their
    current version. Raises Stopped and ClusterProblem."""
    statuses = reader.each(reader.read, [target.name for target in targets])
    states = {each.name: each.state for each in statuses.values() if each.state}
    if kind == "rollback":
        reader.subject = newest_changed(states).subject
    stuck = [state for state in states.values() if state.phase is Phase.STUCK]
    others: set[Subject] = {state.subject for state in stuck}
    if release and others in ({"toolkit"}, {"sharing"}):
        [reader.subject] = others
    subject = reader.subject
    settings = {target.name: _settings(target, subject) for target in targets}
    unwanted = {name for name in settings if settings[name].skip}
    skipped = unwanted - states.keys()
    general, differing = of_run({n: settings[n] for n in settings if n not in skipped})
    if differing:
        raise Stopped(differing)
    there = [n for n in settings if n not in skipped and not statuses[n].problem]
    seen = reader.each(lambda name: reader.look(name, wanted.version, wanted.branch), there)
    views = [_view(statuses[name], seen.get(name)) for name in settings]
    if kind == "rollback":
        views = views_to_return(views)
    elif not wanted.downgrade and subject != "sharing":
        views = [without_downgrade(view) for view in views]
    known = {target.name: target.known_as for target in targets}
    views, places = find_nodes(views, accesses, known)
    if release:
        views = _at_present(left_behind(views), reader)
    general = general or UpgradeSettings.model_validate({})
    plan = make_plan(views, general, unwanted, subject, kind, name=name, ends=ends)
    behind = tuple(places[n].node if n in places else n for n in plan.behind)
    plan = replace(plan, behind=behind)
    return PlannedRun(
        plan=plan,
        settings=settings,
        places=places,
        work={view.name: view.work for view in views},
        leaving={} if ends else _leaving(plan, places, settings),
        warnings={view.name: view.warnings for view in views},
        reboots={t.name: "never" for t in targets if _never_reboots(t, settings, places)},
    )


def _at_present(behind: Mapping[str, HostView], reader: Reader) -> list[HostView]:
    """The hosts with their present version as the target."""
    there = [name for name, view in behind.items() if view.reached and view.before]
    seen = reader.each(lambda name: reader.look(name, behind[name].before or ""), there)
    found = {name: _view(Status(name, behind[name].state), each) for name, each in seen.items()}
    return [
        replace(found.get(name, view), taken=view.taken, unplaced=view.unplaced)
        for name, view in behind.items()
    ]


def begin_run(fleet: PlannedRun, reader: Reader, now: float) -> PlannedRun:
    """Record the run on every host, and take the host's lock. A host that does not answer now is
    not in a new run. Raises Stopped if another process is at work."""
    plan = fleet.plan
    for look in range(LOOKS):
        holders = {n: s.holder for n, s in reader.each(reader.read, plan.hosts).items() if s.holder}
        if not holders:
            break
        if look == LOOKS - 1:
            host, holder = next(iter(holders.items()))
            raise Stopped(findings.AT_WORK(host=host, holder=holder))
        time.sleep(PAUSE)

    def write(name: str) -> str:
        state = plan.hosts[name]
        try:
            reader.write(name, state if plan.resumed else replace(state, since=now))
        except Stopped as error:
            return error.findings[0].text
        return ""

    problems = {name: why for name, why in reader.each(write, plan.hosts).items() if why}
    if plan.resumed:  # the last step of a killed process may still run there
        return fleet
    left = (*plan.left_out, *(LeftOut(name, why, blocked=True) for name, why in problems.items()))
    hosts = {name: state for name, state in plan.hosts.items() if name not in problems}
    behind = [name for name in problems if plan.hosts[name].out]  # left so by an earlier run
    unreached = (*plan.unreached, *behind)
    return replace(fleet, plan=replace(plan, hosts=hosts, left_out=left, unreached=unreached))


def _view(status: Status, result: StepResult | None) -> HostView:
    """A host's view, from its file and its step `look`."""
    name, state = status.name, status.state
    if status.problem:
        return HostView(name, refusals=(status.problem,), reached=False)
    if result is None:
        return HostView(name, state=state)
    if not result.ok:
        refusals = result.blockers or (result.reason,)
        return HostView(name, refusals=refusals, reached=result.reached, state=state)
    known = {each.name for each in fields(HostView)}
    data = {key: value for key, value in result.plan.items() if key in known}
    return HostView(**{**data, "name": name, "state": state})


def _settings(target: UpgradeTarget, subject: Subject) -> UpgradeSettings:
    """The settings of a host. node_reboot decides which pods leave. Raises Stopped."""
    settings, problems = load_upgrade_settings(target.data)
    if settings is None:
        text = " ".join(each.text for each in problems)
        raise Stopped(findings.WRONG_SETTINGS(host=target.name, problem=text))
    if subject == "reboot":  # a reboot ends every pod, so every pod must leave first
        return settings.model_copy(update={"drain": "all"})
    if settings.drain != "auto":
        return settings
    reboots = _reboot_of(target) == "if_needed"
    return settings.model_copy(update={"drain": "all" if reboots else "gpu"})


def _never_reboots(
    target: UpgradeTarget, settings: Mapping[str, UpgradeSettings], nodes: Mapping[str, NodeAt]
) -> bool:
    """True if no step may reboot a host: reboots are not allowed, or pods stay on its node."""
    stays = target.name in nodes and settings[target.name].drain == "gpu"
    return stays or _reboot_of(target) == "never"


def _reboot_of(target: UpgradeTarget) -> str:
    """The node_reboot of a host, or "" if it is invalid."""
    settings = load_role(HostSettings, target.data, [])
    return settings.reboot if settings else ""


def _leaving(
    plan: Plan, places: Mapping[str, NodeAt], settings: Mapping[str, UpgradeSettings]
) -> dict[str, Leaving]:
    return leaving_pods(places, {n: policy_of(settings[n]) for n in plan.hosts if n in places})
