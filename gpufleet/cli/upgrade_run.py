"""Runs of `gpufleet upgrade`: planned, carried out, continued, returned."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from gpufleet.cli.upgrade_clusters import IsGone, never, open_clusters
from gpufleet.cli.upgrade_commands import with_commands_of_now
from gpufleet.cli.upgrade_inventory import accesses_of, known_as, step_words
from gpufleet.cli.upgrade_record import enter, settings_of
from gpufleet.cli.upgrade_runs import no_other
from gpufleet.cli.upgrade_signals import SIGNALS, without_hangup
from gpufleet.cli.upgrade_wanted import Wanted
from gpufleet.core.exit_status import ExitStatus
from gpufleet.core.inventory import CONTROL_PLANE
from gpufleet.core.live import LiveProgress
from gpufleet.core.load_settings import load_role
from gpufleet.core.progress import Progress as Shown
from gpufleet.core.progress import heartbeat, terminal_lines
from gpufleet.core.stopped import Stopped
from gpufleet.host.settings import HostSettings
from gpufleet.kube.operations.access import ClusterProblem
from gpufleet.upgrade.findings.nodes import ABORT_WAITS
from gpufleet.upgrade.findings.runs import NOTHING_TO_RETURN, WRONG_SETTINGS
from gpufleet.upgrade.load import load_settings, of_run
from gpufleet.upgrade.models import HostView, Plan, names
from gpufleet.upgrade.operations.children import Children, Result
from gpufleet.upgrade.operations.clusters import ending_pods, find_nodes
from gpufleet.upgrade.operations.draining import policy_of
from gpufleet.upgrade.operations.run import Run
from gpufleet.upgrade.operations.runner import carry_on
from gpufleet.upgrade.operations.standby import Standby
from gpufleet.upgrade.operations.store import Store, creating
from gpufleet.upgrade.order import Order
from gpufleet.upgrade.plan import make_plan, reversed_plan
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.show import shown_progress
from gpufleet.upgrade.states import State
from gpufleet.upgrade.subjects import Subject
from gpufleet.verify.inventory import Target


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run that is planned, before its first step."""

    order: Order
    plan: Plan
    work: dict[str, Sequence[str]] = field(default_factory=dict)  # on the GPUs, by host
    ending: dict[str, Sequence[str]] = field(default_factory=dict)  # pods that do not come back
    standby: Standby | None = None  # for its steps: it loads while the hosts are asked

    @property
    def nodes(self) -> dict[str, str]:
        """The names of the hosts' nodes."""
        return {name: str(place["node"]) for name, place in self.order.nodes.items()}

    def store(self, say: Callable[[str], None], metrics: str | None = None) -> Store:
        """Its record, from now on. `metrics`: the file for those of the run. Raises Stopped where
        another run over the inventory was begun since the look for one."""
        path = str(Path(metrics).absolute()) if metrics else self.order.metrics
        with creating():
            no_other(str(Path(self.order.folder, self.order.inventory)), say)
            return Store.create(replace(self.order, metrics=path), self.plan)


def plan_run(
    inventory: str,
    targets: Sequence[Target],
    options: Sequence[str],
    wanted: Wanted,
    say: Callable[[str], None],
    *,
    changes: bool,
) -> PlannedRun:
    """The plan of a run over these targets, by what their hosts are now. Raises Stopped."""
    if changes:
        no_other(inventory, say)
    hosts = [target for target in targets if not target.is_cluster]
    hosts.sort(key=lambda target: CONTROL_PLANE in target.groups)  # no canary, if there is another
    settings = {target.name: _settings(target, wanted.subject) for target in hosts}
    general, differing = of_run(settings)
    if differing:
        raise Stopped(differing)
    chosen = [name for name in settings if not settings[name].skip]
    cwd = os.getcwd()
    with without_hangup():
        standby = Standby() if changes else None
    with TemporaryDirectory(prefix="gpufleet-upgrade-") as folder:
        words = step_words(inventory, options)
        children = Children(words, cwd, Path(folder), "", wanted.subject)
        seen = children.step("look", chosen, wanted.version, wanted.branch) if chosen else {}
    views = [_view(name, seen.get(name)) for name in settings]
    known = {target.name: known_as(target) for target in hosts}
    views, places = find_nodes(views, accesses_of(inventory), known)
    plan = make_plan(
        views,
        general or UpgradeSettings.model_validate({}),
        set(settings) - set(chosen),
        wanted.subject,
    )
    kept = {name: settings[name].model_dump() for name in plan.by_name}
    nodes = {name: places[name].as_dict() for name in plan.by_name if name in places}
    left = [name for name, place in places.items() if name not in plan.by_name and place.ready]
    others = {name: places[name].as_dict() for name in left}
    kept_up = [each.name for each in hosts if _never_reboots(each, settings, nodes)]
    reboots = {name: "never" for name in kept_up if name in plan.by_name}
    owner = Path(cwd).stat().st_uid
    order = Order(
        inventory, cwd, tuple(options), owner=owner, hosts=kept, reboots=reboots, nodes=nodes,
        others=others,
    )  # fmt: skip
    policies = {name: policy_of(settings[name]) for name in nodes if settings[name].drain == "all"}
    ending = ending_pods(places, policies)
    return PlannedRun(order, plan, {view.name: view.work for view in views}, ending, standby)


def plan_rollback(store: Store, say: Callable[[str], None]) -> PlannedRun:
    """The run that returns the hosts of another one. Raises Stopped."""
    order, plan = store.head()
    no_other(str(Path(order.folder, order.inventory)), say)
    progress = store.progress()
    done = progress.of(State.DONE)
    if not done or not progress.over or plan.kind == "rollback" or plan.subject == "reboot":
        raise Stopped(NOTHING_TO_RETURN(run=store.name, state=progress.run))
    return PlannedRun(replace(order, origin=store.name), reversed_plan(plan, done))


def reopened(store: Store) -> Store:
    """A run whose process has ended, with its lock taken. Raises Stopped."""
    store.reopen()
    return store


def aborted(store: Store, say: Callable[[str], None], is_gone: IsGone = never) -> ExitStatus | None:
    """End a run; None where the process that carries it out does. Raises Stopped."""
    if not store.is_taken_to("abort"):
        return None
    try:
        status = carry_out(store, say, is_gone=is_gone)
        progress = store.progress()
        left = progress.out_of_service
        ended = progress.over and not left
        return ExitStatus.CONVERGED if ended and status is ExitStatus.FAILED else status
    except ClusterProblem as error:
        progress = store.progress()
        waiting = [name for name in progress.at_work if name in store.head()[0].nodes]
        problem = error.findings[0].message
        unfinished = ABORT_WAITS(run=store.name, hosts=names(waiting), problem=problem)
        raise Stopped(*error.findings, *([unfinished] if waiting else [])) from error


def carry_out(
    store: Store,
    say: Callable[[str], None],
    standby: Standby | None = None,
    is_gone: IsGone = never,
) -> ExitStatus:
    """Carry out a run to its end, a pause or an interruption; the exit status. `standby`: that was
    started for it; `is_gone`: of a cluster that an abort does not reach. Raises Stopped."""
    with without_hangup():
        return _carried_out(store, say, standby, is_gone)


def _carried_out(
    store: Store, say: Callable[[str], None], standby: Standby | None, is_gone: IsGone
) -> ExitStatus:
    """As `carry_out`, where the terminal may go away. Raises Stopped."""
    order, plan = store.head()
    if store.progress().over:
        say(f"run {store.name} is over: {store.progress().run}")
        return _status(store)
    settings = settings_of(store, order, plan)
    enter(order, store.name)
    words = step_words(order.inventory, order.options)
    children = Children(
        words, order.folder, store.path, store.name, plan.subject, order.origin,
        standby or Standby(),
    )  # fmt: skip
    fresh = next(iter(store.entries()), None) is None
    if not fresh:
        settings = with_commands_of_now(order, settings, say)
    clusters, waits = open_clusters(store, order, say, is_gone)
    run = Run(store, plan, settings, children, say, clusters)
    run.unreturned.update(waits)
    ended: list[ExitStatus] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        ended.append(SIGNALS[signal.Signals(number)])
        run.stop()

    for number in SIGNALS:
        signal.signal(number, interrupt)
    run.write("begun" if fresh else "resumed")
    shown = _live(run)
    try:
        say(
            f"run {store.name}; `gpufleet upgrade status --run {store.name}` shows it, `pause` and "
            "`abort` end it"
        )
        shown.start()
        end = carry_on(run)
    finally:
        run.stop()  # no command outlives the run, however it ends
        shown.stop()
        run.report(running=False)
    store.release()  # an abort that was requested at the last moment takes it
    if end.event == "interrupted":
        say(f"interrupted; `gpufleet upgrade resume --run {store.name}` continues the run")
    return ended[0] if ended else _status(store)


def _live(run: Run) -> LiveProgress:
    """Which hosts are out of service, what is done to them, and for how long."""
    begun = run.clock.now()

    def now() -> Shown:
        return shown_progress(run.progress, begun, run.clock.now())

    return LiveProgress(
        lambda width, height: terminal_lines(now(), width, height), lambda: heartbeat(now())
    )


def _status(store: Store) -> ExitStatus:
    """0 for a paused run, and where every host has its target or is left out on purpose."""
    progress = store.progress()
    if progress.run == "paused":
        return ExitStatus.CONVERGED
    done = all(state is State.DONE for state in progress.states.values())
    met = done and not progress.plan.blocked
    return ExitStatus.CONVERGED if met else ExitStatus.FAILED


def _settings(target: Target, subject: Subject) -> UpgradeSettings:
    """Those of a host; which pods leave depends on whether it may be rebooted. Raises Stopped."""
    settings, problems = load_settings(target.data)
    if settings is None:
        text = " ".join(f"{each.code} {each.message}" for each in problems)
        raise Stopped(WRONG_SETTINGS(host=target.name, problem=text))
    if subject == "reboot":  # it ends every pod: none may stay to be ended by it
        return settings.model_copy(update={"drain": "all"})
    if settings.drain != "auto":
        return settings
    reboots = _reboot_of(target) == "if_needed"
    return settings.model_copy(update={"drain": "all" if reboots else "gpu"})


def _never_reboots(
    target: Target, settings: Mapping[str, UpgradeSettings], nodes: Collection[str]
) -> bool:
    """Whether no step may reboot a host: it is not allowed, or pods stay on its node, which were
    not waited for."""
    stays = target.name in nodes and settings[target.name].drain == "gpu"
    return stays or _reboot_of(target) == "never"


def _reboot_of(target: Target) -> str:
    """The node_reboot of a host; "" for an invalid one."""
    settings = load_role(HostSettings, target.data, [])
    return settings.reboot if settings else ""


def _view(name: str, result: Result | None) -> HostView:
    """A host as its step `look` reported it."""
    if result is None:
        return HostView(name)
    if not result.ok:
        return HostView(name, refusals=(result.reason,))
    known = {each.name for each in fields(HostView)}
    data: Mapping[str, Any] = {key: value for key, value in result.plan.items() if key in known}
    listed = {key: tuple(data.get(key, ())) for key in ("work", "refusals")}
    return HostView(**{"name": name, **data, **listed})
