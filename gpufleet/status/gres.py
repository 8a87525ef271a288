"""MIG layouts of a fleet, and its GPUs as lines for Slurm. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from gpufleet.core.visible import one_line
from gpufleet.facts.gpu import Listed
from gpufleet.status.models import FleetStatus

# Slurm takes the driver's name of a GPU in lower case, with underscores, and adds the MIG profile.
# Source: https://slurm.schedmd.com/gres.html (read 2026-11-27), AutoDetect and MIG Management
NOT_IN_A_TYPE = re.compile(r"[^a-z0-9_.+-]")


def layout_of_boards(listed: Listed | None) -> str:
    """The MIG layout that all GPUs share, as in gpu_mig; the number of layouts if they differ; ""
    without MIG devices."""
    boards = listed.boards if listed else ()
    layouts = {_layout(board.devices) for board in boards}
    if not any(board.devices for board in boards):
        return ""
    return layouts.pop() if len(layouts) == 1 else f"{len(layouts)} layouts"


def _layout(devices: tuple[str, ...]) -> str:
    counts = Counter(sorted(devices, reverse=True))
    return ", ".join(f"{profile}:{count}" for profile, count in counts.items())


def gres_of_boards(listed: Listed | None) -> tuple[tuple[str, int], ...]:
    """Slurm's types of the GPUs and MIG devices of a host, with their number."""
    counts: Counter[str] = Counter()
    for board in listed.boards if listed else ():
        name = NOT_IN_A_TYPE.sub("", board.name.lower().replace(" ", "_"))
        counts.update(f"{name}_{device}" for device in board.devices)
        if not board.devices:
            counts[name] += 1
    return tuple(counts.items())


def as_gres(fleet: FleetStatus) -> str:
    """Lines for gres.conf and slurm.conf: a line for all hosts with the same GPUs."""
    hosts: dict[str, list[str]] = defaultdict(list)
    for row in fleet.rows:
        types = ",".join(f"gpu:{name}:{count}" for name, count in row.gres)
        hosts[types].append(one_line(row.name))
    return "".join(f"{line}\n" for line in _gres_lines(hosts))


def _gres_lines(hosts: dict[str, list[str]]) -> Iterator[str]:
    without = hosts.pop("", [])
    yield "# gres.conf"
    for names in hosts.values():
        yield f"NodeName={','.join(names)} AutoDetect=nvml"
    yield "# slurm.conf"
    for types, names in hosts.items():
        yield f"NodeName={','.join(names)} Gres={types}"
    if without:
        yield f"# no GPU was read: {', '.join(without)}"
