"""Types of evidence. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """One file of evidence. `source`: the command that printed it, or the path that was read."""

    name: str  # below the folder of its host or cluster; may be any text
    text: str
    source: str
    note: str = ""  # for example that it was cut, or that its command failed


@dataclass(frozen=True, slots=True)
class MissingEvidence:
    """Evidence that could not be read, and why."""

    name: str
    reason: str


Evidence = EvidenceFile | MissingEvidence
