"""The exceptions that stop one host or cluster, or a command."""

from __future__ import annotations

from gpufleet.core.findings import Finding


class Stopped(Exception):
    """Stops the host, cluster or command for the reasons in `findings`."""

    def __init__(self, *found: Finding) -> None:
        super().__init__("; ".join(map(str, found)))
        self.findings = found


class Unmatched(Stopped):
    """Stops a command whose limit matches nothing."""
