"""containerd in the host's record, where gpufleet installed it."""

from __future__ import annotations

from typing import ClassVar

from gpufleet.facts.record import RoleEntry


class ContainerdEntry(RoleEntry):
    """The package that gpufleet installed."""

    role: ClassVar[str] = "containerd"
