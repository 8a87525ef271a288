"""What nvidia-smi and the container toolkit say of the GPUs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Listed:
    """What `nvidia-smi -L` printed."""

    gpus: int
    error: str = ""  # its last line where it failed; "" where it ended well


@dataclass(frozen=True, slots=True)
class CdiSpec:
    """A CDI specification file; its content is not carried over."""

    path: str
    driver: str = ""  # version in the name of the libnvidia-ml.so that it mounts; "" if it has none
