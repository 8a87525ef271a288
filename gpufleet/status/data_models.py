"""Types of the room's own data files."""

from __future__ import annotations

from datetime import date

from gpufleet.core.entries import Entry, Sourced, loader


class Minor(Sourced):
    """A minor version of a runtime."""

    minor: str
    end_of_life: date | None = None
    floor: str = ""  # lowest version without a known vulnerability
    insecure: bool = False  # vulnerable, and no fixed version of the minor is known


class MaintainedRuntime(Sourced):
    """A runtime as its makers maintain it, in packages of theirs."""

    name: str
    packages: tuple[str, ...]
    minors: tuple[Minor, ...]

    def minor_of(self, version: str) -> Minor | None:
        """The entry of a version; None where there is none for it."""
        short = ".".join(version.split(".")[:2])
        return next((entry for entry in self.minors if entry.minor == short), None)


class MaintainedRuntimes(Entry):
    """runtime_support.yaml"""

    as_of: date
    runtimes: tuple[MaintainedRuntime, ...]


load_runtimes = loader(MaintainedRuntimes, "status/runtime_support")
