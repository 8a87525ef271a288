"""Findings about the fixes of the doctor."""

from __future__ import annotations

from gpufleet.core.findings import warning

FIX_FAILED = warning(
    "GF695",
    "Fix of a check failed",
    "The fix failed: {problem}.",
    "Run it on the host to see all of its output: `{command}`.",
)
