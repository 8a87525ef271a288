"""The exception that stops one host or cluster."""

from __future__ import annotations

from gpufleet.core.findings import Finding


class Stopped(Exception):
    """Stops the host or cluster for the reasons in `findings`."""

    def __init__(self, *found: Finding) -> None:
        super().__init__("; ".join(map(str, found)))
        self.findings = found
