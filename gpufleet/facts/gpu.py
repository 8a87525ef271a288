"""The output of nvidia-smi and the files of the container toolkit about GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

LAYOUT_FILE = "/etc/gpufleet-gpus"  # the managed layout and settings of each GPU


@dataclass(frozen=True, slots=True)
class GpuState:
    """The layout, settings and limits of a GPU. Power is in watts, clocks are in MHz. None or "":
    the GPU does not have it."""

    slot: str
    mig: bool | None  # the MIG mode
    pending_mig: bool | None
    devices: tuple[str, ...] = ()  # the profile of each MIG device
    power: float | None = None
    default_power: float | None = None
    least_power: float | None = None
    most_power: float | None = None
    most_clock: float | None = None
    most_memory_clock: float | None = None
    compute_mode: str = ""  # Default, Exclusive_Process, Prohibited
    ecc: bool | None = None
    pending_ecc: bool | None = None
    minor: int | None = None  # of its device node; None if not known


@dataclass(frozen=True, slots=True)
class Board:
    """A GPU of `nvidia-smi -L`: its name in the driver, and the profile of each MIG device."""

    name: str
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """The output of `nvidia-smi -L`, and the state of the GPUs if it was requested."""

    gpus: int
    error: str = ""  # its last line if it failed, else ""
    mig_devices: int = 0
    boards: tuple[Board, ...] = ()
    states: tuple[GpuState, ...] = ()
    mig_manager: bool = False  # NVIDIA's MIG manager runs, as a service or in a pod


@dataclass(frozen=True, slots=True)
class CdiSpec:
    """A CDI specification file, without its content."""

    path: str
    driver: str = ""  # version of the libnvidia-ml.so that it mounts, or ""


def sum_up_devices(profiles: Iterable[str]) -> str:
    """MIG devices as in gpu_mig, the largest first: `3g.40gb:1, 1g.10gb:4`."""
    counts = Counter(sorted(profiles, reverse=True))
    return ", ".join(f"{profile}:{count}" for profile, count in counts.items())
