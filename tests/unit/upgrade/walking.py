"""A fleet in memory, and a controller that is killed at any moment."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from gpufleet.upgrade.decide import Act, Around, Do, End, Wait, decide
from gpufleet.upgrade.models import HostView, Plan
from gpufleet.upgrade.plan import make_plan
from gpufleet.upgrade.progress import Entry, Progress, folded
from gpufleet.upgrade.settings import UpgradeSettings
from gpufleet.upgrade.states import OUT_OF_SERVICE, Event, State

LONGEST = 10_000  # steps of a history


class Killed(Exception):
    """The controller is gone."""


@dataclass(slots=True)
class Machine:
    """One host, as it really is."""

    name: str
    group: str
    version: str = "old"
    job: bool = False  # work that is waited for
    broken: bool = False  # its change fails
    lost: bool = False  # its roll-back fails too
    intruder: bool = False  # work on its GPUs after the drain
    cordoned: bool = False  # by others, before the run or after they uncordoned the node
    changes: int = 0
    ours: bool = False  # whether the run has its node cordoned, as the API server keeps it
    begun: bool = False  # whether its node has the annotation of the run

    @property
    def out(self) -> bool:
        """Whether its node is cordoned, by anyone."""
        return self.ours or self.cordoned


@dataclass(slots=True)
class World:
    """Machines, a record that survives, and a controller."""

    dice: random.Random
    machines: dict[str, Machine]
    plan: Plan
    entries: list[Entry] = field(default_factory=list)
    now: float = 1_000_000.0
    kills: int = 0
    request: str = ""
    away: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()
    broke: list[str] = field(default_factory=list)  # invariants that did not hold
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self.progress = Progress(self.plan)

    def moment(self) -> None:
        """Time passes, others act, and the controller may be killed."""
        random = self.dice.random
        self.now += self.dice.uniform(0, 30)
        for machine in self.machines.values():
            if machine.job and random() < 0.02:
                machine.job = False
            free = not machine.job and not machine.out
            if free and random() < 0.02:
                machine.job = True
            self.by_user(machine)
        if self.kills < 20 and self.dice.random() < 0.03:
            self.kills += 1
            raise Killed

    def by_user(self, machine: Machine) -> None:
        """A user uncordons a node that the run waits for, and cordons it later."""
        state = self.progress.states[machine.name]
        if machine.ours and state in (State.DRAINING, State.DRAINED) and self.dice.random() < 0.002:
            machine.ours = machine.cordoned = False
        if machine.begun and not machine.out and self.dice.random() < 0.1:
            machine.cordoned = True

    def write(self, name: str, event: Event) -> None:
        self.moment()
        self.entries.append(Entry(self.now, event.value, name))
        self.progress.add(self.entries[-1])
        self.check(self.progress)
        self.moment()

    def check(self, progress: Progress) -> None:
        """What must hold at every moment."""
        taken = [name for name in self.machines if self.taken(name)]
        if len(taken) > self.plan.limits.max_unavailable:
            self.broke.append(f"out of service: {taken}")
        for name in taken:
            if progress.states[name] not in OUT_OF_SERVICE:
                self.broke.append(f"{name} is out of service without a reason")

    def taken(self, name: str) -> bool:
        machine = self.machines[name]
        return machine.ours and not machine.cordoned

    def run(self) -> End:
        """One process of the controller, up to its end."""
        self.progress = folded(self.plan, self.entries)
        for _ in range(LONGEST):
            decision = decide(self.progress, self.around())
            if isinstance(decision, End):
                return decision
            if isinstance(decision, Wait):
                self.now = decision.until
                self.away, self.alerts = (), ()
                continue
            self.act(decision)
        raise AssertionError("the run does not end")

    def around(self) -> Around:
        """What others do: nodes fail, alerts fire."""
        if self.dice.random() < 0.02:
            self.away = ("x",) * self.dice.randint(1, 3)
        if self.dice.random() < 0.02:
            self.alerts = ("A",)
        return Around(self.now, request=self.request, away=self.away, alerts=self.alerts)

    def act(self, act: Act) -> None:
        hosts = list(act.hosts)
        self.dice.shuffle(hosts)
        for name in hosts:
            steps = {
                Do.PREPARE: self.prepare,
                Do.DRAIN: self.drain,
                Do.LEAVE: self.leave,
                Do.CHANGE: self.change,
                Do.RESTORE: self.restore,
                Do.RETURN: self.give_back,
            }
            steps[act.do](self.machines[name], self.progress.states[name])

    def prepare(self, machine: Machine, state: State) -> None:
        if self.dice.random() < 0.05:
            return  # its cluster does not answer yet
        good = self.dice.random() < 0.95
        self.write(machine.name, Event.PREPARED if good else Event.REFUSED)

    def drain(self, machine: Machine, state: State) -> None:
        if state is State.READY:
            if self.alerts:
                self.broke.append(f"{machine.name} was begun while an alert fired")
            if len(self.away) + self.progress.out_of_service >= self.plan.limits.max_unavailable:
                self.broke.append(f"{machine.name} was begun though {self.away} are away")
            self.write(machine.name, Event.DRAIN_BEGAN)
        if not machine.ours if machine.begun else machine.cordoned:
            self.write(machine.name, Event.NOT_DRAINED)
            return
        machine.ours = machine.begun = True
        self.moment()
        if not machine.job:
            self.write(machine.name, Event.DRAINED)
        elif self.dice.random() < 0.05:
            self.write(machine.name, Event.NOT_DRAINED)  # it took too long

    def leave(self, machine: Machine, state: State) -> None:
        drained = state is State.DRAINED
        self.write(machine.name, Event.NOT_REACHED if drained else Event.NOT_DRAINED)

    def change(self, machine: Machine, state: State) -> None:
        if state is State.DRAINED:
            self.write(machine.name, Event.CHANGE_BEGAN)
        if not machine.ours:
            fresh = state is State.DRAINED
            self.write(machine.name, Event.NOT_REACHED if fresh else Event.CHANGE_FAILED)
            return
        if not machine.changes and self.dice.random() < 0.05:  # its clients do not go
            self.write(machine.name, Event.NOT_REACHED)
            return
        self.disturb(machine)
        if not machine.broken:
            machine.version = "new"
        machine.changes += 1
        self.write(machine.name, Event.CHANGE_FAILED if machine.broken else Event.CHANGED)

    def restore(self, machine: Machine, state: State) -> None:
        if state is State.FAILED:
            self.write(machine.name, Event.RESTORE_BEGAN)
        if self.dice.random() < 0.05:  # others delete its node, and its kubelet registers again
            machine.ours = machine.begun = machine.cordoned = False
            self.moment()
        if not machine.ours:
            machine.begun = False
            self.write(machine.name, Event.RESTORE_FAILED)
            return
        if machine.broken and self.dice.random() < 0.1:
            machine.intruder = True  # work that began after the change failed
        if machine.intruder:
            self.moment()
            machine.intruder = self.dice.random() < 0.7
            if machine.intruder and self.dice.random() < 0.1:  # it took too long
                self.write(machine.name, Event.RESTORE_FAILED)
            return
        self.disturb(machine)
        if not machine.lost:
            machine.version = "old"
        self.write(machine.name, Event.RESTORE_FAILED if machine.lost else Event.RESTORED)

    def disturb(self, machine: Machine) -> None:
        if machine.job or machine.intruder:
            self.broke.append(f"{machine.name}: a job was killed")
        if not self.taken(machine.name):
            self.broke.append(f"{machine.name} was changed in service")
        state = self.progress.states[machine.name]
        if state not in (State.CHANGING, State.RESTORING):
            self.broke.append(f"{machine.name}: changed as {state}")

    def give_back(self, machine: Machine, state: State) -> None:
        machine.ours = machine.begun = False
        self.write(machine.name, Event.RETURNED)


def world(seed: int) -> World:
    """A fleet and a plan that a number chooses."""
    dice = random.Random(seed)
    count = dice.randint(1, 12)
    machines = {
        f"host{number}": Machine(
            f"host{number}",
            group=dice.choice("ab"),
            job=dice.random() < 0.3,
            broken=dice.random() < 0.1,
            lost=dice.random() < 0.3,
            cordoned=dice.random() < 0.1,
        )
        for number in range(count)
    }
    settings = UpgradeSettings(
        canaries=dice.randint(1, 2),
        wave=dice.choice([1, 3, "50%", "100%"]),
        max_unavailable=dice.choice([1, 2, 3, "50%"]),
        soak=dice.choice([0, 300]),
        max_failed=dice.randint(1, 4),
        max_failed_in_a_row=dice.randint(1, 3),
        window=dice.choice([None, "Mon-Fri 09:00-16:30", "22:00-04:00"]),
    )
    views = [
        HostView(m.name, m.group, "debian12", "6.1", "1.0", "1.0", "2.0") for m in machines.values()
    ]
    return World(dice, machines, make_plan(views, settings))
