"""Random histories of a run, and what did not hold in them.

`make histories HISTORIES=100000 SEED=1` runs many; a seed is a whole history, so that
`make histories HISTORIES=1 SEED=N` is history N again.
"""

from __future__ import annotations

import sys
import time

import click

from gpufleet.upgrade.progress import folded
from gpufleet.upgrade.states import BAD, ENDED, OUT_OF_SERVICE, State
from tests.unit.upgrade.walking import Killed, World, world

REQUESTS = ("", "", "", "pause", "abort")


def live(fleet: World) -> str:
    """Run it to its end, again after each kill and pause; the event it ended with."""
    while True:
        try:
            end = fleet.run()
        except Killed:
            fleet.request = fleet.dice.choice(REQUESTS)
            continue
        if end.event != "paused":
            return end.event
        fleet.request = ""


def faults(seed: int) -> list[str]:
    """What did not hold in one history."""
    return history(seed)[1]


def history(seed: int) -> tuple[World, list[str]]:
    """A fleet after its run, and what did not hold."""
    fleet = world(seed)
    end = live(fleet)
    states = folded(fleet.plan, fleet.entries).states
    left = [name for name, state in states.items() if state in OUT_OF_SERVICE - ENDED]
    wrong = list(fleet.broke)
    wrong += [f"left at work: {left}"] if left else []
    if end == "finished" and any(state not in ENDED for state in states.values()):
        wrong.append("finished too early")
    for name, machine in fleet.machines.items():
        state = states[name]
        if (state is State.DONE) > (machine.version == "new"):
            wrong.append(f"{name}: done, and not new")
        if fleet.taken(name) and state is not State.STUCK:
            wrong.append(f"{name} is cordoned at the end as {state.value}")
        if state not in (State.DONE, State.STUCK) and machine.version == "new":
            wrong.append(f"{name} is new as {state.value}")
        if machine.changes > 1 + fleet.kills:
            wrong.append(f"{name} was changed {machine.changes} times")
    return fleet, wrong + of_canaries(fleet, states)


def of_canaries(fleet: World, states: dict[str, State]) -> list[str]:
    """Groups of which a host was changed though their canary failed."""
    canaries = {name for wave in fleet.plan.waves if wave.canary for name in wave.hosts}
    wrong = []
    for group in fleet.plan.groups:
        members = [host.name for host in fleet.plan.hosts if host.group == group]
        lost = [name for name in members if name in canaries and states[name] in BAD]
        done = [n for n in members if n not in canaries and states[n] is State.DONE]
        wrong += [f"{done} were changed though {lost} failed"] if lost and done else []
    return wrong


@click.command()
@click.option("--count", default=100_000, show_default=True, help="Histories.")
@click.option(
    "--seed", default=1, show_default=True, help="Of the first one; the next has one more."
)
def main(count: int, seed: int) -> None:
    """Run random histories, each to its end; exit status 1 where something did not hold."""
    began, cpu, events, kills, broken = time.monotonic(), time.process_time(), 0, 0, 0
    for number in range(seed, seed + count):
        fleet, wrong = history(number)
        events, kills = events + len(fleet.entries), kills + fleet.kills
        if wrong:
            broken += 1
            print(f"history {number}: {'; '.join(wrong)}", flush=True)
        if (number - seed + 1) % 10_000 == 0:
            print(f"{time.monotonic() - began:6.0f} s  {number - seed + 1} histories", flush=True)
    print(
        f"{count} histories from seed {seed}: {events} events, {kills} kills of the controller, "
        f"{broken} histories in which something did not hold; {time.monotonic() - began:.0f} s, "
        f"{time.process_time() - cpu:.0f} s of CPU"
    )
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
