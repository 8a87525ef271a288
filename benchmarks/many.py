"""`gpufleet status` and the floor with many host names: the same hosts under several names each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.ours import Programs
from benchmarks.stats import Summary
from benchmarks.timing import Run
from gpufleet_sandbox.host import Host
from gpufleet_sandbox.inventory import group_data, nodes

NAMES = 500
ROUNDS = 3
LOGINS = 25  # at once on one host: of 50, a login ended now and then without an exit status


@dataclass(frozen=True, slots=True)
class Many:
    """One number of names; summaries in seconds, memory in MiB of the largest process."""

    names: int
    hosts: int
    status: Summary
    floor: Summary
    status_cpu: Summary
    floor_cpu: Summary
    memory: float


def named(found: Sequence[tuple[str, Any]], count: int) -> list[tuple[str, Any]]:
    """So many names, in turn those of each host."""
    return [(f"gpu-{number:04}", found[number % len(found)][1]) for number in range(count)]


def measure(
    sandbox: str,
    hosts: Sequence[Host],
    programs: Programs,
    progress: Callable[[str], None],
    count: int = NAMES,
) -> list[Many]:
    """Time both in turn, on hosts that are as they should be; nothing where they are too few."""
    if not hosts or count > LOGINS * len(hosts):
        progress(f"{count} names need {-(-count // LOGINS)} hosts, not {len(hosts)}: left out")
        return []
    inventory = _inventory(programs.work / "many.py", named(nodes(sandbox), count))
    again = [hosts[number % len(hosts)] for number in range(count)]
    rounds: dict[str, list[Run]] = {"floor": [], "status": []}
    for number in range(ROUNDS):
        rounds["floor"].append(programs.floor(again))
        rounds["status"].append(programs.status_of_names(inventory))
        progress(
            f"{count} names, round {number + 1} of {ROUNDS}: floor "
            f"{rounds['floor'][-1].wall:.2f} s, status {rounds['status'][-1].wall:.2f} s"
        )
    result = Many(
        names=count,
        hosts=len(hosts),
        status=Summary.of([run.wall for run in rounds["status"]]),
        floor=Summary.of([run.wall for run in rounds["floor"]]),
        status_cpu=Summary.of([run.cpu for run in rounds["status"]]),
        floor_cpu=Summary.of([run.cpu for run in rounds["floor"]]),
        memory=max(run.memory for run in rounds["status"]),
    )
    return [result]


def _inventory(file: Path, found: Sequence[tuple[str, Any]]) -> Path:
    """An inventory of those names, with the settings of inventories/sandbox.py."""
    data = {**group_data(), "node_reboot": "if_needed"}
    file.write_text(f"gpu_nodes = ({list(found)!r}, {data!r})\n")
    return file
