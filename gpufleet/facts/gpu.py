"""The output of nvidia-smi and the files of the container toolkit about GPUs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Listed:
    """The output of `nvidia-smi -L`."""

    gpus: int
    error: str = ""  # its last line if it failed, else ""
    mig_devices: int = 0


@dataclass(frozen=True, slots=True)
class CdiSpec:
    """A CDI specification file, without its content."""

    path: str
    driver: str = ""  # version of the libnvidia-ml.so that it mounts, or ""
