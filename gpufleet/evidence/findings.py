"""Findings about the collection of evidence."""

from __future__ import annotations

from gpufleet.core.findings import blocker

NOTHING_COLLECTED = blocker(
    "GF260",
    "No evidence collected",
    "No evidence of any host or cluster was collected. {path} has the reasons alone.",
    "Read MANIFEST.txt in the archive, correct what it says, then run again with a new --bundle.",
)
