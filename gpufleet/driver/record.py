"""The driver in the host's record."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from gpufleet.facts.record import RoleEntry


class DriverEntry(RoleEntry):
    """The driver that gpufleet installed."""

    role: ClassVar[str] = "driver"

    branch: str = ""
    modules: str = ""  # open or proprietary
    source: str = ""
    build: str = ""  # dkms or precompiled
    load: list[str] = Field(default_factory=list)  # modules, in order
    prerequisites: list[str] | None = None  # kernel modules that were loaded for the driver
    repository: str | None = None
    keyring: str | None = None
    source_file: str | None = None
    fabric_manager: bool = False
    gpus: int = 0  # the most that any run found here
