"""MIG layouts of a fleet, and its GPUs as lines for Slurm. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from gpufleet.core.visible import one_line
from gpufleet.facts.gpu import Listed, sum_up_devices
from gpufleet.status.models import FleetStatus

# Slurm takes the driver's name of a GPU in lower case, with underscores. For a MIG device it takes
# the name up to the first hyphen, and adds slices and memory, as in nvidia_a100_3g.39gb. The memory
# is not that of the profile: Slurm rounds what the driver of the day reports. A type in slurm.conf
# needs to be a part of that text only.
# Sources: https://slurm.schedmd.com/gres.html (read 2026-11-27), AutoDetect and MIG Management;
# _handle_mig in https://github.com/SchedMD/slurm, src/plugins/gpu/nvml/gpu_nvml.c (read 2026-11-29)
NOT_IN_A_TYPE = re.compile(r"[^a-z0-9_.+-]")
_SHAPE = re.compile(r"(\d+g)\.\d+gb")  # without parts of an instance (1c.) and media (+me)


def layout_of_boards(listed: Listed | None) -> str:
    """The MIG layout that all GPUs share, as in gpu_mig; the number of layouts if they differ; ""
    without MIG devices."""
    boards = listed.boards if listed else ()
    layouts = {sum_up_devices(board.devices) for board in boards}
    if not any(board.devices for board in boards):
        return ""
    return layouts.pop() if len(layouts) == 1 else f"{len(layouts)} layouts"


def gres_of_boards(listed: Listed | None) -> tuple[tuple[str, int], ...]:
    """Slurm's types of the GPUs and MIG devices of a host, with their number."""
    counts: Counter[tuple[str, str]] = Counter()  # by type without memory, and with it
    for board in listed.boards if listed else ():
        name = NOT_IN_A_TYPE.sub("", board.name.lower().replace(" ", "_"))
        counts.update(_mig_types(name.partition("-")[0], device) for device in board.devices)
        if not board.devices:
            counts[name, name] += 1
    shared = Counter(short for short, _ in counts)
    return tuple(
        (short if shared[short] == 1 else full, count) for (short, full), count in counts.items()
    )


def _mig_types(name: str, device: str) -> tuple[str, str]:
    """The type of a MIG device without its memory, and with it."""
    shape = _SHAPE.search(device)
    return (f"{name}_{shape[1]}", f"{name}_{shape[0]}") if shape else (name, name)


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
