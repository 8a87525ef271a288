"""A fleet in memory: hosts and one cluster, which other users change during a run."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from gpufleet.core.stopped import Stopped
from gpufleet.drain.operations.cluster import ClusterNodes
from gpufleet.host.findings import CONNECTION_LOST
from gpufleet.host.upgrade_settings import Subject, UpgradeSettings
from gpufleet.host.upgrade_state import WORKING_PHASES, HostState, Phase, parse_state, state_text
from gpufleet.upgrade.models import HostView, Plan
from gpufleet.upgrade.operations.acts import Round
from gpufleet.upgrade.operations.loop import carry_on
from gpufleet.upgrade.operations.planning import PlannedRun, begin_run
from gpufleet.upgrade.operations.result import StepResult
from gpufleet.upgrade.operations.run import Timing, UpgradeRun
from gpufleet.upgrade.plan import make_plan
from gpufleet.upgrade.show import Status

OLD, NEW = "580.1", "580.2"
MONDAY = 1_780_000_000.0
BUSY = StepResult(False, "GF072 GPUs are in use", code="GF072", busy=True)
LOST = StepResult(False, "GF504 lost", code="GF504", reached=False)

T = TypeVar("T")


class Killed(BaseException):
    """The controller is gone."""


class Workers(Executor):
    """Does one work after the other, in an order that dice choose."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.waiting: dict[Future[Any], Callable[[], Any]] = {}

    def submit(self, fn: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        done: Future[T] = Future()
        self.waiting[done] = lambda: fn(*args, **named)
        return done

    def first_done(self, works: Collection[Future[None]], seconds: float) -> set[Future[None]]:
        if not works:
            return set()
        one = self.dice.choice(list(works))
        one.set_result(self.waiting.pop(one)())
        return {one}


@dataclass(slots=True)
class Machine:
    """One host, as it really is."""

    name: str
    group: str = "a"
    version: str = OLD
    loaded: str = ""  # of its module, if it differs from the version
    half: bool = False  # its pins are not those of its version
    job: bool = False  # work on its GPUs that is waited for
    intruder: bool = False  # work that started after the drain
    refuses: bool = False  # it cannot be prepared
    broken: bool = False  # its change fails
    lost: bool = False  # its roll-back fails
    silent: int = 0  # number of requests without an answer
    node: bool = False  # of the cluster
    cordon: str = ""  # ours: the run
    user_cordon: bool = False
    marked: str = ""  # why it was left behind
    held_by: str = ""  # the holder of its lock
    file: str = ""
    installs: list[str] = field(default_factory=list)
    checks: int = 0  # of its node, after a change
    offers: list[Any] = field(default_factory=list)  # that these checks required

    @property
    def state(self) -> HostState | None:
        return parse_state(self.file)


@dataclass
class World:
    """Machines with their files and nodes, which survive; controllers come and go."""

    machines: dict[str, Machine]
    settings: UpgradeSettings = field(default_factory=lambda: UpgradeSettings.model_validate({}))
    now: float = MONDAY
    moment: Callable[[], None] = lambda: None  # others act, or the controller is killed
    subject: Subject = "driver"
    target: str = NEW
    broke: list[str] = field(default_factory=list)  # invariants that did not hold
    phases: list[tuple[str, str]] = field(default_factory=list)  # what was written
    said: list[str] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    workers: Workers = field(default_factory=lambda: Workers(random.Random(1)))
    nodes: Nodes = field(init=False)
    run: UpgradeRun = field(init=False)  # of the last process

    def __post_init__(self) -> None:
        self.nodes = Nodes(self)

    # requests of a run to hosts

    def each(self, call: Callable[[str], T], names: Iterable[str]) -> dict[str, T]:
        return {name: call(name) for name in names}

    def read(self, name: str) -> Status:
        machine = self.machines[name]
        if self._is_silent(machine):
            return Status(name, problem="GF504 lost")
        return Status(name, machine.state, machine.held_by)

    def write(self, name: str, state: HostState) -> None:
        self.moment()
        machine = self.machines[name]
        if self._is_silent(machine):
            raise Stopped(CONNECTION_LOST(doing="in a test", cause="it is silent"))
        machine.file = state_text(state)
        self.phases.append((name, state.phase.value))
        self.check()
        self.moment()

    def look(self, name: str, version: str = "", branch: str = "") -> StepResult:
        machine = self.machines[name]
        work = ("train",) if machine.job or machine.intruder else ()
        there = {"before": machine.version, "loaded": machine.loaded or machine.version}
        left = ("GF079 pins",) if machine.half else ()
        plan = {**there, "work": work, "refusals": left}
        return LOST if self._is_silent(machine) else StepResult(True, plan=plan)

    def step(self, name: str, step: str, version: str, reboot: str = "") -> StepResult:
        self.moment()
        machine = self.machines[name]
        if step == "look":
            return self.look(name)
        if self._is_silent(machine):
            return LOST
        if step in ("prepare", "take"):
            return StepResult(not machine.refuses, "GF051" if machine.refuses else "")
        if machine.job or machine.intruder:
            return BUSY
        return self._changed(machine, step, version)

    def _changed(self, machine: Machine, step: str, version: str) -> StepResult:
        state = machine.state
        if state is None or state.phase not in (Phase.CHANGING, Phase.RESTORING) or not state.out:
            self.broke.append(f"{machine.name}: {step} in {state}")
        if machine.node and not (machine.cordon or machine.user_cordon):
            self.broke.append(f"{machine.name}: {step} without a cordon")
        fails = machine.lost if step == "restore" else machine.broken and version == self.target
        if (not fails or step == "change") and machine.version != version:
            machine.version = version
            machine.installs.append(version)
        self.moment()
        return StepResult(not fails, "GF054 not as before" if fails else "", touched=True)

    def _is_silent(self, machine: Machine) -> bool:
        machine.silent = max(machine.silent - 1, 0)
        return machine.silent > 0

    def check(self) -> None:
        """Check the invariants of a run."""
        out = [m.name for m in self.machines.values() if m.cordon or self._is_out(m)]
        total = len(self.machines)
        share = self.settings.max_unavailable
        most = share if isinstance(share, int) else max(total * int(share[:-1]) // 100, 1)
        if len(out) > most:
            self.broke.append(f"out of service: {out}")

    def _is_out(self, machine: Machine) -> bool:
        state = machine.state
        return bool(state and (state.out or state.phase in WORKING_PHASES))

    # a controller

    def views(self) -> list[HostView]:
        found = []
        for machine in self.machines.values():
            status = self.read(machine.name)
            version = machine.version
            view = HostView(
                machine.name, machine.group, "d", "k", version, version, self.target,
                reached=not status.problem, refusals=(status.problem,) if status.problem else (),
                taken=bool(machine.cordon), state=status.state,
            )  # fmt: skip
            found.append(view)
        return found

    def planned(self, name: str = "r", **how: Any) -> Plan:
        return make_plan(self.views(), self.settings, subject=self.subject, name=name, **how)

    def started(self, plan: Plan | None = None, **timing: Any) -> UpgradeRun:
        """A process that carries out a run, before its first act."""
        plan = plan or self.planned()
        settings = dict.fromkeys(self.machines, self.settings)
        fleet = begin_run(PlannedRun(plan, settings, {}), self, self.now)
        nodes = [m.name for m in self.machines.values() if m.node and m.name in fleet.plan.hosts]
        clusters = dict.fromkeys(nodes, cast(ClusterNodes, self.nodes))
        times = {"poll": 0.0, "longest": 0.0, "silence": 1000.0, "tick": 0.0, **timing}
        clock = Timing(
            now=self.clock, steady=self.clock, sleep=self.sleep,
            first_done=self.workers.first_done, **times,
        )  # fmt: skip
        self.run = UpgradeRun(fleet.plan, settings, self, self.said.append, clusters, timing=clock)
        return self.run

    def carried_out(self, plan: Plan | None = None, asked: str = "") -> str:
        """One process, to its end; why it ended."""
        run = self.started(plan)
        run.asked = asked
        return carry_on(run, self.workers)

    def sleep(self, seconds: float) -> None:
        """Advance the clock while the run waits."""
        self.now += 900
        self.moment()

    def clock(self) -> float:
        self.now += 1
        return self.now


@dataclass(slots=True)
class Seen:
    away: list[str]
    behind: list[str]
    ours: dict[str, str]


class Kured:
    """kured's lock."""

    def __init__(self) -> None:
        self.held = False
        self.others: tuple[str, ...] = ()

    def taken(self) -> tuple[str, ...]:
        self.held = not self.others
        return self.others

    def give_back(self) -> None:
        self.held = False


@dataclass(frozen=True, slots=True)
class Pull:
    came: str = "there"
    reason: str = ""


class Nodes:
    """One cluster whose nodes have the names of their hosts; doors as ClusterNodes has them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.kured = Kured()
        self.has_image: set[str] = set()
        self.unchecked: dict[str, str] = {}
        self.goes_back = False
        self.is_aborted: Callable[[], bool] = lambda: False
        self.refusals: dict[str, str] = {}  # of the pod that checks a node
        self.pulls: dict[str, Pull] = {}
        self.problems: dict[str, Exception] = {}  # door -> what it raises
        self.events: list[dict[str, Any]] = []

    @property
    def nodes(self) -> Mapping[str, str]:
        return {name: name for name, machine in self.world.machines.items() if machine.node}

    def _at(self, door: str) -> None:
        self.world.moment()
        if door in self.problems:
            raise self.problems[door]

    def look(self) -> Seen:
        self._at("look")
        machines = self.world.machines.values()
        behind = [m.name for m in machines if m.marked]
        ours = {m.name: m.cordon for m in machines if m.cordon and m.node}
        return Seen(self.world.away, behind, ours)

    def check_refused(self, host: str, image: str) -> str:
        self._at("check_refused")
        return self.refusals.get(host, "")

    def pull(self, host: str, image: str, seconds: float) -> Pull:
        self._at("pull")
        found = self.pulls.get(host, Pull())
        if found.came == "there":
            self.has_image.add(host)
        return found

    def drain(self, policies: Mapping[str, Any]) -> dict[str, Round]:
        self._at("drain")
        found = {}
        for host in policies:
            machine = self.world.machines[host]
            if machine.user_cordon and not machine.cordon:
                found[host] = Round(given_up="another user cordoned the node")
                continue
            machine.cordon = self.world.run.plan.run
            self.world.check()
            found[host] = Round(drained=not machine.job, reasons=["train: it is of a Job"])
        self.world.moment()
        return found

    def clear(self, host: str, policy: Any) -> Round:
        self._at("clear")
        machine = self.world.machines[host]
        return Round(drained=True) if machine.cordon else Round(given_up="the node is not ours")

    def check(self, host: str, image: str, seconds: float, offers: Any = ()) -> str:
        self._at("check")
        self.world.machines[host].checks += 1
        self.world.machines[host].offers.append(offers)
        return ""

    def give_back(self, host: str) -> str:
        self._at("give_back")
        machine = self.world.machines[host]
        machine.cordon = machine.marked = ""
        self.world.moment()
        return "its node stays cordoned by a user" if machine.user_cordon else ""

    def leave_behind(self, host: str, reason: str) -> None:
        self._at("leave_behind")
        self.world.machines[host].marked = reason

    def post_event(self, body: dict[str, Any]) -> None:
        if "post_event" in self.problems:
            raise self.problems["post_event"]
        self.events.append(body)


def fleet_of(*names: str, **how: Any) -> dict[str, Machine]:
    """Machines of one group that are alike."""
    return {name: Machine(name, **how) for name in names}


def moved(machine: Machine, **changes: Any) -> None:
    """Write another state into the file of a machine."""
    state = machine.state
    assert state
    machine.file = state_text(replace(state, **changes))


def dice_of(seed: int) -> random.Random:
    return random.Random(seed)
