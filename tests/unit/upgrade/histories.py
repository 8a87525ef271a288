"""Random histories of an upgrade, and the invariants that they violated.

`make histories HISTORIES=100000 SEED=1` runs many; a seed is a whole history, so that
`make histories HISTORIES=1 SEED=N` is history N again. The controller is killed before or after any
write, jobs come and go, hosts do not answer, nodes fail, users cordon and uncordon.
"""

from __future__ import annotations

import random
import sys
import time

import click

from gpufleet.host.upgrade_settings import UpgradeSettings
from gpufleet.host.upgrade_state import FINAL_PHASES, RETURNED, Phase
from tests.fakes.upgrade_fleet import NEW, OLD, Killed, Machine, Workers, World

MOST_KILLS, MOST_PROCESSES = 12, 60


class History:
    """A fleet and the events of its upgrade, both chosen at random from a seed."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(seed)
        cluster = dice.random() < 0.6
        machines = {
            f"host{n}": Machine(
                f"host{n}",
                group=dice.choice("ab"),
                job=dice.random() < 0.3,
                refuses=dice.random() < 0.05,
                broken=dice.random() < 0.1,
                lost=dice.random() < 0.3,
                node=cluster and dice.random() < 0.9,
            )
            for n in range(dice.randint(1, 8))
        }
        settings = UpgradeSettings(
            canaries=dice.randint(1, 2),
            wave=dice.choice([1, 3, "50%", "100%"]),
            max_unavailable=dice.choice([1, 2, 3, "50%"]),
            soak=dice.choice([0, 300]),
            max_failed=dice.randint(1, 4),
            max_failed_in_a_row=dice.randint(1, 3),
            window=dice.choice([None, "Mon-Fri 09:00-16:30", "22:00-04:00"]),
            wait=dice.choice([100, 3600]),
        )
        self.world = World(machines, settings, moment=self.moment, workers=Workers(dice))
        self.kills = self.processes = 0
        self.calm = False  # nothing interferes at the end

    def moment(self) -> None:
        """Time passes, users and jobs act, and the controller may be killed or asked to pause."""
        dice, world = self.dice, self.world
        if self.calm:
            return
        world.now += dice.uniform(0, 30)
        world.away = ["x"] * dice.randint(1, 3) if dice.random() < 0.02 else []
        for machine in world.machines.values():
            self.by_others(machine)
        if self.kills < MOST_KILLS and dice.random() < 0.03:
            self.kills += 1
            raise Killed
        if dice.random() < 0.005 and hasattr(world, "run"):
            world.run.asked = dice.choice(["pause", "abort"])

    def by_others(self, machine: Machine) -> None:
        random = self.dice.random
        state = machine.state
        out = bool(state and state.out) or machine.cordon or machine.user_cordon
        if machine.job and random() < 0.05:
            machine.job = False
        elif not out and random() < 0.02:
            machine.job = True
        if state and state.phase is Phase.RESTORING and random() < 0.02:
            machine.intruder = True  # on a bare host, or by a pod that tolerates everything
        elif machine.intruder and random() < 0.3:
            machine.intruder = False
        if random() < 0.003:
            machine.silent = self.dice.randint(1, 4)
        if machine.node and random() < 0.003:
            machine.user_cordon = not machine.user_cordon

    def live(self) -> None:
        """Run the upgrade to its end, with the same command again after each kill and pause."""
        while not self.calm or self.processes < MOST_PROCESSES:
            self.processes += 1
            self.calm = self.processes > MOST_PROCESSES // 2 or self.kills >= MOST_KILLS
            if self.calm:
                for machine in self.world.machines.values():
                    machine.job = machine.intruder = False
                    machine.silent = 0
                self.world.away = []
            plan = self.world.planned(f"run{self.processes}")
            if not plan.hosts:
                if self.is_over() and not plan.unreached:
                    return
                continue
            try:
                end = self.world.carried_out(plan)
            except Killed:
                continue
            run = self.world.run
            if end != "paused" and not run.given_up and not run.plan.behind and self.is_over():
                return

    def is_over(self) -> bool:
        states = [machine.state for machine in self.world.machines.values()]
        return all(s is None or (s.phase in FINAL_PHASES and (not s.out or s.phase is Phase.STUCK))
                   for s in states)  # fmt: skip

    def wrong(self) -> list[str]:
        """The invariants that were violated."""
        self.live()
        found = list(self.world.broke)
        if not self.is_over():
            found.append(f"not over: {self.world.phases[-5:]}")
        for machine in self.world.machines.values():
            found += self.wrong_of(machine)
        return found

    def wrong_of(self, machine: Machine) -> list[str]:
        found, state = [], machine.state
        phase = state.phase if state else None
        if machine.cordon and phase is not Phase.STUCK:
            found.append(f"{machine.name} is cordoned as {phase}")
        if phase is Phase.DONE and machine.version != NEW:
            found.append(f"{machine.name} is done with {machine.version}")
        if phase in RETURNED - {Phase.DONE} and machine.version != OLD:
            found.append(f"{machine.name} is {phase} with {machine.version}")
        if phase is Phase.STUCK and machine.node and not machine.marked:
            found.append(f"{machine.name} is stuck without a mark")
        twice = machine.installs.count(NEW) > 1 + machine.installs.count(OLD)
        if twice:
            found.append(f"{machine.name} was changed twice: {machine.installs}")
        return found


def history(seed: int) -> tuple[History, list[str]]:
    """A history, and the invariants that it violated."""
    found = History(seed)
    return found, found.wrong()


@click.command()
@click.option("--count", default=100_000, show_default=True, help="Histories.")
@click.option(
    "--seed", default=1, show_default=True, help="Of the first one; the next has one more."
)
def main(count: int, seed: int) -> None:
    """Run random histories, each to its end; exit status 1 if one violated an invariant."""
    began, cpu, writes, kills, broken = time.monotonic(), time.process_time(), 0, 0, 0
    for number in range(seed, seed + count):
        found, wrong = history(number)
        writes, kills = writes + len(found.world.phases), kills + found.kills
        if wrong:
            broken += 1
            print(f"history {number}: {'; '.join(wrong)}", flush=True)
        if (number - seed + 1) % 10_000 == 0:
            print(f"{time.monotonic() - began:6.0f} s  {number - seed + 1} histories", flush=True)
    print(
        f"{count} histories from seed {seed}: {writes} states written, {kills} kills of the "
        f"controller, {broken} histories in which something did not hold; "
        f"{time.monotonic() - began:.0f} s, {time.process_time() - cpu:.0f} s of CPU"
    )
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
