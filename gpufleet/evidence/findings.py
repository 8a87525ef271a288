"""Findings about the collection of evidence."""

from __future__ import annotations

from gpufleet.core.findings import blocker

EVIDENCE_INCOMPLETE = blocker(
    "GF260",
    "Evidence incomplete",
    "The evidence from {lost} was not collected, or only in part. {path} has the reasons.",
    "Fix the causes that MANIFEST.txt in the archive lists, then run again with a new --bundle.",
)
