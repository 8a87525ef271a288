"""Random histories of a run keep what must hold: kills, jobs, failures and requests at any time."""

from __future__ import annotations

import random

import pytest

from gpufleet.upgrade.progress import folded
from gpufleet.upgrade.states import BAD, ENDED, OUT_OF_SERVICE, State
from tests.unit.upgrade.walking import Killed, World, world

FEW, MANY = 1_000, 100_000  # histories
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
    return wrong + of_canaries(fleet, states)


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


def test_invariants_hold() -> None:
    for seed in range(FEW):
        assert faults(seed) == [], seed


@pytest.mark.extended
def test_invariants_hold_in_many_histories() -> None:
    first = random.Random(20261124).randrange(10**9)
    for seed in range(first, first + MANY):
        assert faults(seed) == [], seed
