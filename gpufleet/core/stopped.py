"""How code says that it cannot go on with one host or cluster."""

from __future__ import annotations

from gpufleet.core.findings import Finding


class Stopped(Exception):
    """The host or cluster cannot go on, for the reasons that `findings` give."""

    def __init__(self, *found: Finding) -> None:
        super().__init__("; ".join(map(str, found)))
        self.findings = found
