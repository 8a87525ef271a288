"""Runs over hosts that are as they should be: ours, the floor, Ansible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.ansible_runs import Ansible
from benchmarks.fleet import add_python_apt, commands_run
from benchmarks.ours import Programs
from benchmarks.stats import Summary
from benchmarks.timing import Run
from gpufleet_sandbox.host import Host

ROUNDS = 5
ANSIBLE_ROUNDS = 2
ANSIBLE_ONCE_FROM = 40  # hosts: one run takes minutes there


@dataclass(frozen=True, slots=True)
class Converged:
    """One number of hosts; summaries in seconds, memory in MiB of the largest process."""

    hosts: int
    ours: Summary
    status: Summary  # `gpufleet status`
    doctor: Summary  # `gpufleet doctor`
    prolog: Summary  # `gpufleet doctor @local --for prolog` on a busy machine
    floor: Summary
    doctor_floor: Summary  # the floor with the doctor's command
    start: Summary
    ours_cpu: Summary
    floor_cpu: Summary
    memory: float
    commands: int  # on the host with the most
    ansible: Summary | None


def measure(
    hosts: Sequence[Host],
    programs: Programs,
    ansible: Ansible | None,
    progress: Callable[[str], None],
) -> Converged:
    """Time the programs in turn, so that what else the machine does meets all of them."""
    programs.floor(hosts)  # not counted: the first connections find cold caches
    before = commands_run(hosts)
    programs.gpu_node()
    commands = max(after - was for after, was in zip(commands_run(hosts), before, strict=True))
    rounds: defaultdict[str, list[Run]] = defaultdict(list)
    for number in range(ROUNDS):
        rounds["start"].append(programs.start())
        rounds["floor"].append(programs.floor(hosts))
        rounds["ours"].append(programs.gpu_node())
        rounds["status"].append(programs.status())
        rounds["doctor_floor"].append(programs.floor(hosts, health=True))
        rounds["doctor"].append(programs.doctor())
        progress(
            f"{len(hosts)} hosts, round {number + 1} of {ROUNDS}: "
            f"floor {rounds['floor'][-1].wall:.2f} s, gpufleet {rounds['ours'][-1].wall:.2f} s"
        )
    return Converged(
        hosts=len(hosts),
        ours=_walls(rounds["ours"]),
        status=_walls(rounds["status"]),
        doctor=_walls(rounds["doctor"]),
        prolog=_walls([programs.busy_prolog() for _ in range(ROUNDS)]),
        floor=_walls(rounds["floor"]),
        doctor_floor=_walls(rounds["doctor_floor"]),
        start=_walls(rounds["start"]),
        ours_cpu=Summary.of([run.cpu for run in rounds["ours"]]),
        floor_cpu=Summary.of([run.cpu for run in rounds["floor"]]),
        memory=max(run.memory for run in rounds["ours"]),
        commands=commands,
        ansible=_ansible(hosts, ansible, progress) if ansible else None,
    )


def _ansible(hosts: Sequence[Host], ansible: Ansible, progress: Callable[[str], None]) -> Summary:
    add_python_apt(hosts, ansible.work)
    ansible.prepare(hosts)
    count = 1 if len(hosts) >= ANSIBLE_ONCE_FROM else ANSIBLE_ROUNDS
    runs = []
    for number in range(count):
        progress(f"{len(hosts)} hosts, Ansible {number + 1} of {count}: takes minutes with many")
        runs.append(ansible.run(len(hosts)))
        progress(f"{len(hosts)} hosts, Ansible {number + 1} of {count}: {runs[-1].wall:.1f} s")
    return _walls(runs)


def _walls(runs: Sequence[Run]) -> Summary:
    return Summary.of([run.wall for run in runs])
