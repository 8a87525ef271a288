"""Findings about the collection of evidence."""

from __future__ import annotations

from gpufleet.core.findings import blocker

EVIDENCE_INCOMPLETE = blocker(
    "GF260",
    "Evidence incomplete",
    "The evidence of {lost} was not collected, or only a part of it. {path} has the reasons.",
    "Read MANIFEST.txt in the archive, correct what it says, then run again with a new --bundle.",
)
